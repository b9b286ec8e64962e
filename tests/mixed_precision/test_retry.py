import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mixed_precision import reference
from supremum.mixed_precision import DynamicLossScale, scaled_value_and_grad

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


def test_zero_retries_skip_the_step():
    scale = DynamicLossScale(1024.0, hysteresis=2)
    args = (scale.init(), jnp.float16(3), jnp.float32(32))
    retried = scaled_value_and_grad(loss, scale, on_overflow="retry", max_retries=0)(*args)
    assert retried.state == scaled_value_and_grad(loss, scale)(*args).state


@either_mode
def test_retry_returns_value_and_auxiliary_data_as_arrays(jitted):
    def with_aux(w, highest):
        return loss(w, highest), {"w": w, "n": 3, "key": jax.random.key(0), "half": np.float16(2)}

    scale = DynamicLossScale(1024.0)
    step = scaled_value_and_grad(with_aux, scale, has_aux=True, on_overflow="retry")
    (value, aux), grad, finite, state = (jax.jit(step) if jitted else step)(scale.init(), jnp.float16(2), 64.0)
    assert (float(value), float(grad), bool(finite), float(state.loss_scale)) == (1024, 512, True, 64)
    assert (float(aux["w"]), int(aux["n"]), aux["half"].dtype) == (2, 3, "float16")


def test_steps_without_overflow_run_outside_the_loop():
    def text(on_overflow):
        step = scaled_value_and_grad(loss, "dynamic", on_overflow=on_overflow)
        return str(jax.make_jaxpr(step)(DynamicLossScale().init(), jnp.float16(1), 4.0))

    assert "while" not in text("skip")
    before_the_loop, _ = text("retry").split("while[", 1)
    assert "is_finite" in before_the_loop


MOST = 2**31 - 1
# The settings, the largest number of retries, the retries before, the loss, whether it becomes finite, and the state.
RETRIED = {
    "a scale that is too high": ([2.0**15], {}, 16, 0, lambda w: loss(w, 32), True, [32, 1, 0, 0, 10]),
    "no scale is low enough": ([1024.0], {}, 16, 0, lambda w: w * jnp.nan, False, [512, 0, 1, 1, 10]),
    "too few retries": ([1024.0], {}, 3, 0, lambda w: w * jnp.nan, False, [512, 0, 1, 1, 3]),
    "no retries": ([1024.0], {}, 0, 0, lambda w: w * jnp.nan, False, [512, 0, 1, 1, 0]),
    "more than 16 retries": ([2.0**40], {}, 16, 0, lambda w: loss(w, jnp.float32(0)), False, [2.0**39, 0, 1, 1, 16]),
    "a scale at the floor": ([2.0], {"minimum": 2.0}, 16, 0, lambda w: loss(w, 1), False, [2, 0, 1, 1, 0]),
    "a count that cannot rise": ([8.0], {}, 2, MOST, lambda w: loss(w, 1), False, [4, 0, 1, 1, MOST]),
    "a float16 loss": ([2.0**40], {}, 16, 0, lambda w: w * jnp.float16(256), True, [2.0**7, 1, 0, 0, 8]),
}


@either_mode
@pytest.mark.parametrize("name", RETRIED)
def test_a_step_is_retried_until_it_is_finite(name, jitted):
    arguments, settings, max_retries, retries, function, finite, state = RETRIED[name]
    scale = DynamicLossScale(*arguments, **settings)
    step = scaled_value_and_grad(function, scale, on_overflow="retry", max_retries=max_retries)
    before = scale.init()._replace(num_retries=jnp.asarray(retries))
    made = (jax.jit(step) if jitted else step)(before, jnp.float16(3))
    assert (bool(made.finite), [leaf.item() for leaf in made.state]) == (finite, state)
    if finite:
        assert float(made.grads) == float(jax.grad(lambda w: function(w).astype(jnp.float32))(jnp.float16(3)))
