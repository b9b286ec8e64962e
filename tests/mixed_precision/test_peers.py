"""Bugs of other loss scalers, each reproduced in the named version, that ours must not have."""

import jax
import jax.numpy as jnp
import optax
import pytest

from supremum.mixed_precision import (
    DynamicLossScale,
    FixedLossScale,
    loss_scaled,
    scale_loss,
    scaled_value_and_grad,
)

either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


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
