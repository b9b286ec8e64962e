"""Bugs of other loss scalers, each reproduced in the named version, that ours must not have."""

import jax
import jax.numpy as jnp
import optax
import pytest

from supremum.mixed_precision import (
    DynamicLossScale,
    FixedLossScale,
    LossScaleState,
    loss_scaled,
    scale_loss,
    scaled_value_and_grad,
)

either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
TRUE, FALSE = jnp.asarray(True), jnp.asarray(False)


@either_mode
def test_jit_keeps_the_floor_unlike_jmp(jitted):
    scale = DynamicLossScale(1.0, minimum=2.0**-10)
    update = jax.jit(scale.update) if jitted else scale.update
    state = scale.init()
    for expected in (0.5, 0.25):
        state = update(state, FALSE)
        assert float(state.loss_scale) == expected


@either_mode
def test_a_float16_scale_works_unlike_in_jmp(jitted):
    """jmp#47: lax.select of float32 and float16."""
    assert DynamicLossScale(jnp.float16(2**15)) == DynamicLossScale()
    scale = DynamicLossScale(increment_period=1)
    state = scale.init()._replace(loss_scale=jnp.float16(2**15))
    for finite, expected in ((TRUE, 2.0**16), (FALSE, 2.0**14)):
        after = (jax.jit(scale.update) if jitted else scale.update)(state, finite)
        assert (after.loss_scale.dtype, float(after.loss_scale)) == (jnp.float32, expected)
    step = scaled_value_and_grad(lambda w: w * w, scale)
    _, grad, _, after = (jax.jit(step) if jitted else step)(state, jnp.float32(3))
    assert (float(grad), after.loss_scale.dtype) == (6, jnp.float32)


def test_a_fixed_scale_is_a_pytree_with_leaves_unlike_in_jmp():
    step = jax.jit(lambda state, loss: state.loss_scale * loss)
    eight, nine = FixedLossScale(8.0).init(), FixedLossScale(9.0).init()
    assert jax.tree.leaves(eight)
    assert (float(step(eight, 2.0)), float(step(nine, 2.0))) == (16, 18)
    assert step._cache_size() == 1


@either_mode
def test_unscaling_uses_the_scale_of_the_loss_unlike_mpx(jitted):
    """mpx 0.2 updates the scale first, so value and gradients are halved when the scale rises."""
    scale = DynamicLossScale(8.0, increment_period=1)
    step = scaled_value_and_grad(lambda w: 3 * w, scale)
    value, grad, _, state = (jax.jit(step) if jitted else step)(scale.init(), jnp.float32(2))
    assert (float(value), float(grad), float(state.loss_scale)) == (6, 3, 16)
    optimizer = loss_scaled(optax.sgd(1.0), scale)
    state = optimizer.init(jnp.float32(2))
    grad = jax.grad(lambda w: scale_loss(3 * w, state))(jnp.float32(2))
    updates, state = (jax.jit(optimizer.update) if jitted else optimizer.update)(grad, state)
    assert (float(updates), float(state.scaling.loss_scale)) == (-3, 16)


@either_mode
def test_the_scale_is_not_cast_to_float16_unlike_in_mpx(jitted):
    scale = DynamicLossScale(2.0**20)
    step = scaled_value_and_grad(lambda w: (w * w).astype(jnp.float32) * 1e-6, scale)
    value, grad, finite, _ = (jax.jit(step) if jitted else step)(scale.init(), jnp.float16(2))
    assert bool(finite)
    assert (float(value), float(grad)) == pytest.approx((4e-6, 4e-6), rel=1e-3)


@either_mode
def test_the_scale_stays_in_bounds_unlike_in_keras_3(jitted):
    scale = DynamicLossScale(2.0, increment_period=1)
    update = jax.jit(scale.update) if jitted else scale.update
    down = up = scale.init()
    for _ in range(200):
        down, up = update(down, FALSE), update(up, TRUE)
    assert (float(down.loss_scale), float(up.loss_scale)) == (1, 2.0**127)
    assert float(update(up, FALSE).loss_scale) == 2.0**126


@pytest.mark.parametrize("on_overflow", ["skip", "retry"])
def test_steps_are_traced_once_unlike_in_flax(on_overflow):
    scale, traces = DynamicLossScale(), []

    def loss(w):
        traces.append(1)
        return (w * w).sum()

    step = jax.jit(scaled_value_and_grad(loss, scale, on_overflow=on_overflow))
    state, w = scale.init(), jnp.ones(2)
    for _ in range(3):
        before = len(traces) if step._cache_size() else None
        _, grads, _, state = step(state, w)
        w = w - 0.1 * grads
        assert before in (None, len(traces))
    assert step._cache_size() == 1


@either_mode
def test_the_first_step_does_not_overflow_unlike_in_flax(jitted):
    """Flax's DynamicScale multiplies a float16 loss by 65536 in float16 on its first step: inf."""
    scale = DynamicLossScale(2.0**16)
    step = scaled_value_and_grad(lambda w: w * w, scale)
    value, grad, finite, state = (jax.jit(step) if jitted else step)(scale.init(), jnp.float16(0.75))
    assert (float(value), float(grad), bool(finite)) == (0.5625, 1.5, True)
    assert float(state.loss_scale) <= 2.0**15


@either_mode
@pytest.mark.parametrize("period", [1, 2, 3])
def test_the_scale_grows_after_the_period_unlike_in_flax(jitted, period):
    scale = DynamicLossScale(8.0, increment_period=period)
    update = jax.jit(scale.update) if jitted else scale.update
    state, scales = scale.init(), []
    for _ in range(2 * period):
        state = update(state, TRUE)
        scales.append(float(state.loss_scale))
    assert scales == [8.0] * (period - 1) + [16.0] * period + [32.0]


def test_the_state_is_strongly_typed_unlike_in_flax():
    state = DynamicLossScale().init()
    assert isinstance(state, LossScaleState)
    assert not any(leaf.weak_type for leaf in state)
