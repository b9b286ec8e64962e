import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supremum.errors import UnknownNameError
from supremum.mixed_precision import DynamicLossScale, FixedLossScale, LossScaleState, as_loss_scale


def reference(scale, good, skipped, finite, *, period, multiplier, minimum, maximum):
    """The RFC's paragraph, in Python."""
    if not finite:
        return min(max(scale / multiplier, minimum), maximum), 0, skipped + 1
    if good < period - 1:
        return scale, good + 1, skipped
    return min(max(scale * multiplier, minimum), maximum), 0, skipped


SETTINGS = list(itertools.product([1, 2, 5], [2.0, 4.0], [1.0, 0.25], [2.0**127, 8.0]))
CASES = list(itertools.product([True, False], [0, 1, 4], ["minimum", "middle", "maximum"]))


def _one_by_one(update, states, finite):
    after = [update(jax.tree.map(lambda leaf, i=i: leaf[i], states), finite[i]) for i in range(len(finite))]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *after)


def _scanned(update, states, finite):
    return jax.lax.scan(lambda _, case: (None, update(*case)), None, (states, finite))[1]


MODES = {
    "eager": _one_by_one,
    "jitted": lambda update, states, finite: _one_by_one(jax.jit(update), states, finite),
    "scanned": _scanned,
}


@pytest.mark.parametrize("mode", MODES)
def test_every_transition_is_the_reference(mode):
    for period, multiplier, minimum, maximum in SETTINGS:
        bounds = {"multiplier": multiplier, "minimum": minimum, "maximum": maximum}
        values = {"minimum": minimum, "middle": 4.0, "maximum": maximum}
        states = LossScaleState(
            jnp.asarray([values[scale] for _, _, scale in CASES], jnp.float32),
            jnp.asarray([good for _, good, _ in CASES]),
            jnp.full(len(CASES), 7),
        )
        finite = jnp.asarray([finite for finite, _, _ in CASES])
        after = MODES[mode](DynamicLossScale(4.0, period, **bounds).update, states, finite)
        got = list(
            zip(after.loss_scale.tolist(), after.num_good_steps.tolist(), after.num_skipped_steps.tolist(), strict=True)
        )
        assert got == [reference(values[s], good, 7, f, period=period, **bounds) for f, good, s in CASES]


def test_the_ceiling_holds_where_the_product_overflows_float32():
    scale = DynamicLossScale(2.0**127, increment_period=1, maximum=2.0**127)
    state = scale.init()
    for _ in range(3):
        state = scale.update(state, jnp.asarray(True))
    assert float(state.loss_scale) == 2.0**127


@partial(jax.jit, static_argnums=0)
def _trajectory(scale, finites):
    return jax.lax.scan(lambda s, f: (scale.update(s, f), s.loss_scale), scale.init(), finites)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.booleans(), min_size=50, max_size=50), st.integers(1, 4), st.sampled_from([1.5, 2.0, 10.0]))
def test_long_runs_stay_within_floor_and_ceiling(finites, period, multiplier):
    scale = DynamicLossScale(2.0**15, period, multiplier, minimum=1.0, maximum=2.0**20)
    state, scales = _trajectory(scale, jnp.asarray(finites))
    assert all(1.0 <= value <= 2.0**20 for value in [*np.asarray(scales), float(state.loss_scale)])
    assert int(state.num_skipped_steps) == finites.count(False)


def test_the_state_is_strong_float32_and_integer_and_never_retraced():
    traces = []

    @jax.jit
    def step(state, finite):
        traces.append(1)
        return DynamicLossScale().update(state, finite)

    state = DynamicLossScale().init()
    for finite in (True, False, True):
        state = step(state, jnp.asarray(finite))
    assert len(traces) == 1
    assert (state.loss_scale.dtype, state.loss_scale.weak_type) == (jnp.float32, False)
    assert (state.num_good_steps.dtype, state.num_good_steps.weak_type) == (jnp.int32, False)
    with jax.enable_x64(True):
        state = DynamicLossScale().update(DynamicLossScale().init(), jnp.asarray(True))
        assert (state.loss_scale.dtype, state.num_good_steps.dtype) == (jnp.float32, jnp.int64)


def test_the_state_is_a_pytree_with_every_field():
    state = LossScaleState(jnp.float32(3), jnp.asarray(5), jnp.asarray(7))
    leaves, structure = jax.tree.flatten(state)
    assert [float(leaf) for leaf in leaves] == [3, 5, 7]
    assert jax.tree.unflatten(structure, leaves) == state


def test_no_buffer_is_shared_so_that_the_state_can_be_donated():
    step = jax.jit(lambda s: DynamicLossScale().update(s, jnp.asarray(True)), donate_argnums=0)
    assert int(step(DynamicLossScale().init()).num_good_steps) == 1


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"initial_loss_scale": 0.5}, "initial_loss_scale"),
        ({"initial_loss_scale": float("inf")}, "initial_loss_scale"),
        ({"initial_loss_scale": float("nan")}, "initial_loss_scale"), ({"increment_period": 0}, "increment_period"),
        ({"multiplier": 1.0}, "multiplier"), ({"multiplier": float("inf")}, "multiplier"),
        ({"minimum": 0.0}, "minimum"), ({"maximum": 1e39}, "maximum"),
        ({"initial_loss_scale": 0.5, "maximum": 0.5}, "maximum"), ({"multiplier": float("nan")}, "multiplier"),
    ],
)  # fmt: skip
def test_senseless_settings_are_refused_by_name(arguments, name):
    with pytest.raises(ValueError, match=f"^{name} is"):
        DynamicLossScale(**arguments)


@pytest.mark.parametrize("value", [0.5, 0, -1, float("inf"), float("nan")])
def test_a_fixed_scale_below_one_or_not_finite_is_refused(value):
    with pytest.raises(ValueError, match="finite and at least 1"):
        FixedLossScale(value)


def test_short_forms():
    assert as_loss_scale(None) is None
    assert as_loss_scale("dynamic") == DynamicLossScale()
    assert as_loss_scale(8) == as_loss_scale(8.0) == FixedLossScale(8.0)
    assert as_loss_scale(FixedLossScale(2.0)) == FixedLossScale(2.0)
    with pytest.raises(UnknownNameError, match="did you mean 'dynamic'"):
        as_loss_scale("dynamc")
    for bad in (True, [], 1j):
        with pytest.raises(TypeError, match="a loss scale is"):
            as_loss_scale(bad)
