import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mixed_precision import reference
from supremum.errors import UnknownNameError
from supremum.mixed_precision import DynamicLossScale, FixedLossScale, LossScaleState, scaled_value_and_grad

either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


def loss(w, highest):
    """Return a loss with a scaled gradient that overflows float16 at scales above `highest`, a power of two or 0."""
    return w.astype(jnp.float32) * (2.0**15 / highest)


SETTINGS = [
    ({"period": period, "multiplier": 2.0, "minimum": 1.0, "maximum": 2.0**10, "hysteresis": hysteresis}, retries)
    for period, hysteresis, retries in itertools.product([1, 2], [1, 2], [0, 2, 16])
]
HIGHEST = [1024, 4, 4, 0, 64, 64, 1, 1024, 0, 0, 0, 32, 8, 8, 8, 2, 1, 512]


@pytest.mark.one_in(10)
@pytest.mark.parametrize(("settings", "max_retries"), SETTINGS, ids=str)
def test_retries_match_the_reference(settings, max_retries):
    names = {"period": "increment_period"}
    scale = DynamicLossScale(256.0, **{names.get(name, name): value for name, value in settings.items()})
    step = scaled_value_and_grad(loss, scale, on_overflow="retry", max_retries=max_retries)

    def run(state, highest):
        made = step(state, jnp.float16(1), highest)
        return made.state, made

    _, made = jax.lax.scan(run, scale.init(), jnp.asarray(HIGHEST, jnp.float32))
    expected = (256.0, 0, 0, 0, 0)
    for number, highest in enumerate(HIGHEST):
        before, expected = expected, reference.retried_step(expected, highest, max_retries, **settings)
        assert tuple(leaf[number].item() for leaf in made.state) == expected, number
        assert bool(made.finite[number]) == (expected[2] == before[2])
        if highest and made.finite[number]:
            assert float(made.grads[number]) == 2.0**15 / highest


@either_mode
def test_retry_saves_a_step_when_the_scale_is_too_high(jitted):
    scale = DynamicLossScale(2.0**15)
    step = scaled_value_and_grad(loss, scale, on_overflow="retry")
    made = (jax.jit(step) if jitted else step)(scale.init(), jnp.float16(3), jnp.float32(32))
    assert (float(made.grads), bool(made.finite)) == (1024, True)
    assert [float(leaf) for leaf in made.state] == [32, 1, 0, 0, 10]


@pytest.mark.parametrize(("jitted", "max_retries"), [(False, 3), (True, 0), (True, 3), (True, 16)])
def test_a_step_that_fails_at_every_scale_lowers_the_scale_once(jitted, max_retries):
    scale = DynamicLossScale(1024.0)
    step = scaled_value_and_grad(lambda w: w * jnp.nan, scale, on_overflow="retry", max_retries=max_retries)
    made = (jax.jit(step) if jitted else step)(scale.init(), jnp.float32(3))
    assert not bool(made.finite)
    assert [float(leaf) for leaf in made.state] == [512, 0, 1, 1, min(max_retries, 10)]


def test_zero_retries_skip_the_step():
    scale = DynamicLossScale(1024.0, hysteresis=2)
    args = (scale.init(), jnp.float16(3), jnp.float32(32))
    retried = scaled_value_and_grad(loss, scale, on_overflow="retry", max_retries=0)(*args)
    assert retried.state == scaled_value_and_grad(loss, scale)(*args).state


@either_mode
def test_a_scale_at_the_floor_is_not_retried(jitted):
    scale = DynamicLossScale(2.0, minimum=2.0)
    step = scaled_value_and_grad(loss, scale, on_overflow="retry")
    made = (jax.jit(step) if jitted else step)(scale.init(), jnp.float16(3), jnp.float32(1))
    assert [float(leaf) for leaf in made.state] == [2, 0, 1, 1, 0]


@either_mode
def test_a_saturated_retry_count_does_not_stop_retries(jitted):
    scale = DynamicLossScale(8.0)
    step = scaled_value_and_grad(loss, scale, on_overflow="retry", max_retries=2)
    full = LossScaleState(jnp.float32(8), *(jnp.asarray(n) for n in (0, 0, 0, 2**31 - 1)))
    made = (jax.jit(step) if jitted else step)(full, jnp.float16(3), jnp.float32(1))
    assert not bool(made.finite)
    assert int(made.state.num_retries) == 2**31 - 1


@either_mode
def test_a_float16_loss_is_retried_from_its_largest_scale(jitted):
    scale = DynamicLossScale(2.0**40)
    step = scaled_value_and_grad(lambda w: w * jnp.float16(256), scale, on_overflow="retry")
    made = (jax.jit(step) if jitted else step)(scale.init(), jnp.float16(3))
    assert (float(made.grads), float(made.state.loss_scale), int(made.state.num_retries)) == (256, 2.0**7, 8)


@either_mode
def test_retry_returns_value_and_auxiliary_data_as_arrays(jitted):
    def with_aux(w, highest):
        return loss(w, highest), {"w": w, "n": 3, "key": jax.random.key(0), "half": np.float16(2)}

    scale = DynamicLossScale(1024.0)
    step = scaled_value_and_grad(with_aux, scale, has_aux=True, on_overflow="retry")
    (value, aux), grad, finite, state = (jax.jit(step) if jitted else step)(scale.init(), jnp.float16(2), 64.0)
    assert (float(value), float(grad), bool(finite), float(state.loss_scale)) == (1024, 512, True, 64)
    assert (float(aux["w"]), int(aux["n"]), aux["half"].dtype) == (2, 3, "float16")


def test_retry_raises_on_auxiliary_data_that_are_not_arrays():
    scale = DynamicLossScale()
    step = scaled_value_and_grad(lambda w: (w, {"name": "w"}), scale, has_aux=True, on_overflow="retry")
    with pytest.raises(TypeError, match=r"got str \(at '1/name'\): do not return it"):
        step(scale.init(), jnp.float32(1))
    assert scaled_value_and_grad(lambda w: (w, "w"), scale, has_aux=True)(scale.init(), jnp.float32(1)).value[1] == "w"


def test_invalid_on_overflow_and_max_retries_raise():
    with pytest.raises(ValueError, match="cannot retry: use on_overflow='skip'"):
        scaled_value_and_grad(loss, FixedLossScale(8.0), on_overflow="retry")
    with pytest.raises(UnknownNameError, match="did you mean 'retry'"):
        scaled_value_and_grad(loss, "dynamic", on_overflow="retyr")
    with pytest.raises(ValueError, match="choose from skip, retry"):
        scaled_value_and_grad(loss, "dynamic", on_overflow=None)
    with pytest.raises(ValueError, match=r"^max_retries must be from 0"):
        scaled_value_and_grad(loss, "dynamic", on_overflow="retry", max_retries=-1)


def test_steps_without_overflow_run_outside_the_loop():
    def text(on_overflow):
        step = scaled_value_and_grad(loss, "dynamic", on_overflow=on_overflow)
        return str(jax.make_jaxpr(step)(DynamicLossScale().init(), jnp.float16(1), 4.0))

    assert "while" not in text("skip")
    before_the_loop, _ = text("retry").split("while[", 1)
    assert "is_finite" in before_the_loop
