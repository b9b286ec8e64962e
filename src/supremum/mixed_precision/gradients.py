"""Gradients of a scaled loss, unscaled again, with the state of the scale carried along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from supremum.formats import as_format
from supremum.mixed_precision.casting import is_floating
from supremum.mixed_precision.finite import all_finite
from supremum.mixed_precision.loss_scale import LossScale, LossScaleState, as_loss_scale


class ScaledGradients(NamedTuple):
    """What a differentiated step gives.

    Args:
        value: the loss, unscaled; with `has_aux` the pair of loss and auxiliary data, as `jax.value_and_grad` has it.
        grads: the gradients, unscaled, at least float32.
        finite: bool scalar, whether all gradients are finite; always true where the scale never skips.
        state: the state of the loss scale for the next step.
    """

    value: Any
    grads: Any
    finite: jax.Array
    state: LossScaleState


def scaled_value_and_grad(
    loss_fn: Callable[..., Any],
    loss_scale: LossScale | str | float,
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
) -> Callable[..., ScaledGradients]:
    """`jax.value_and_grad` through a scaled loss.

    The loss is scaled in float32, so that a float16 loss does not overflow in the scaling itself, and the gradients
    are unscaled by the very scale that scaled them, not by the one for the next step.

    Args:
        loss_fn: a function that returns a scalar loss, or with `has_aux` a pair of it and auxiliary data.
        loss_scale: the settings: a `LossScale`, `"dynamic"` or a number.
        argnums: which arguments of `loss_fn` to differentiate.
        has_aux: whether `loss_fn` returns auxiliary data.

    Returns:
        A function of the loss scale's state and `loss_fn`'s arguments, which returns `ScaledGradients`.

    >>> import jax.numpy as jnp
    >>> from supremum.mixed_precision import DynamicLossScale
    >>> scale = DynamicLossScale(initial_loss_scale=1024.0)
    >>> step = scaled_value_and_grad(lambda w: (w * w).sum(), scale)
    >>> value, grads, finite, state = step(scale.init(), jnp.full(1, 3e-5, jnp.float16))
    >>> grads.dtype, bool(finite), f"{float(grads[0]):.1e}"
    (dtype('float32'), True, '6.0e-05')
    """
    settings = as_loss_scale(loss_scale)
    if settings is None:
        raise TypeError("there is nothing to scale without a loss scale: use jax.value_and_grad")

    def scaled_loss(scale: jax.Array, *args: Any, **kwargs: Any) -> tuple[jax.Array, Any]:
        out = loss_fn(*args, **kwargs)
        loss = out[0] if has_aux else out
        return _at_least_float32(loss) * scale, out

    shifted = argnums + 1 if isinstance(argnums, int) else tuple(number + 1 for number in argnums)
    differentiate = jax.grad(scaled_loss, shifted, has_aux=True)

    def value_and_grad(state: LossScaleState, *args: Any, **kwargs: Any) -> ScaledGradients:
        scaled, value = differentiate(state.loss_scale, *args, **kwargs)

        def unscaled(leaf: Any) -> Any:
            return _at_least_float32(leaf) / state.loss_scale

        grads = jax.tree.map(unscaled, scaled)
        # The scaled gradients are the ones asked: dividing can turn no infinity into a number, but would cost a pass.
        finite = all_finite(scaled) if settings.skips else jnp.asarray(True)
        return ScaledGradients(value, grads, finite, settings.update(state, finite))

    return value_and_grad


def _at_least_float32(leaf: Any) -> Any:
    if is_floating(leaf) and as_format(leaf.dtype).bits < as_format(jnp.float32).bits:
        return leaf.astype(jnp.float32)
    return leaf
