"""Ten thousand random runs of a small float16 network with Adam, with overflows in random steps."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supremum.mixed_precision import DynamicLossScale, loss_scaled, scale_loss, scaled_value_and_grad

RUNS, STEPS = 100, 32
SCALES = [
    DynamicLossScale(2.0**15),
    DynamicLossScale(8.0, increment_period=1, multiplier=4.0, minimum=2.0, maximum=2.0**24),
    DynamicLossScale(64.0, increment_period=2, multiplier=1.5, minimum=0.25, hysteresis=3),
]
PARAMS = {"w": jnp.asarray([0.5, -0.4, 0.1]), "b": jnp.asarray(0.25)}


def loss(params, factor):
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.float16), params)
    out = jnp.tanh(half["w"] * jnp.asarray([1, 2, 3], jnp.float16) + half["b"])
    return (out.astype(jnp.float32) * factor).sum()


def by_loss_scaled(scale):
    optimizer = loss_scaled(optax.adam(1e-2), scale)

    def step(params, state, factor):
        grads = jax.grad(lambda p: scale_loss(loss(p, factor), state))(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    return optimizer.init(PARAMS), step


def by_scaled_value_and_grad(scale, on_overflow):
    optimizer = optax.adam(1e-2)
    differentiate = scaled_value_and_grad(loss, scale, on_overflow=on_overflow, max_retries=3)

    def step(params, state, factor):
        inner, scaling = state
        _, grads, finite, scaling = differentiate(scaling, params, factor)

        def apply():
            updates, moved = optimizer.update(grads, inner, params)
            return optax.apply_updates(params, updates), moved

        params, inner = jax.lax.cond(finite, apply, lambda: (params, inner))
        return params, (inner, scaling)

    return (optimizer.init(PARAMS), scale.init()), step


STEPPERS = {
    "loss_scaled": by_loss_scaled,
    "skip": partial(by_scaled_value_and_grad, on_overflow="skip"),
    "retry": partial(by_scaled_value_and_grad, on_overflow="retry"),
}


@partial(jax.jit, static_argnames=("scale", "stepper"))
def run(scale, stepper, factors):
    start, step = STEPPERS[stepper](scale)

    def one(carry, factor):
        after = step(*carry, factor)
        return after, after

    # lax.map, since vmap would turn every cond into a select.
    return jax.lax.map(lambda each: jax.lax.scan(one, (PARAMS, start), each)[1], factors)


def check(scale, stepper, bad):
    kinds = np.resize([np.inf, np.nan, -np.inf], bad.shape)
    params, (inner, scaling) = run(scale, stepper, jnp.asarray(np.where(bad, kinds, 1), jnp.float32))
    scales, skipped = np.asarray(scaling.loss_scale), np.diff(scaling.num_skipped_steps, axis=1, prepend=0)
    assert np.all((scales >= scale.minimum) & (scales <= scale.maximum))
    assert set(np.unique(skipped)) <= {0, 1}
    assert np.all(skipped[bad] == 1)
    for leaf, first in zip(
        *map(jax.tree.leaves, ((params, inner), (PARAMS, STEPPERS[stepper](scale)[0][0]))), strict=True
    ):
        values = np.asarray(leaf)
        assert np.all(np.isfinite(values))
        before = np.concatenate([np.broadcast_to(first, (len(values), 1, *np.shape(first))), values[:, :-1]], axis=1)
        unchanged = (values == before).reshape(*values.shape[:2], -1).all(-1)
        assert np.all(unchanged[skipped == 1])
    counts = np.asarray(inner[0].count)
    np.testing.assert_array_equal(counts, np.cumsum(1 - skipped, axis=1))
    return params


@pytest.mark.slow
@pytest.mark.parametrize("stepper", STEPPERS)
@settings(max_examples=34, deadline=None)
@given(
    st.binary(min_size=RUNS * STEPS // 8, max_size=RUNS * STEPS // 8),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(SCALES),
)
def test_the_scale_stays_in_bounds_and_a_skipped_step_changes_nothing(stepper, raw, rarer, scale):
    bits = np.unpackbits(np.frombuffer(raw, np.uint8)).reshape(RUNS, STEPS).astype(bool)
    for shift in range(1, rarer):  # overflows in one of 2, 4 or 8 steps
        bits &= np.roll(bits, shift * 7)
    check(scale, stepper, bits)


def test_good_steps_change_parameters():
    params = check(SCALES[0], "skip", np.zeros((RUNS, STEPS), bool))
    assert np.all(np.asarray(params["w"])[:, -1] != PARAMS["w"])
