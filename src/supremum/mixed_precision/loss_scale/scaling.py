"""Checks of losses, and scaling and unscaling of gradients."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.errors import OperandError
from supremum.mixed_precision.tree_casting import as_real_floating, described, is_floating, widen


def split_loss(out: Any, has_aux: bool) -> tuple[jax.Array, Any]:
    """Split the result of a loss function into the loss and the auxiliary data, and check the loss.

    Args:
        out: the loss; with `has_aux`, a pair of the loss and auxiliary data.
        has_aux: whether the function returns auxiliary data; without it they are None.

    Raises:
        OperandError: if the loss is not a real floating scalar, or `out` is not a pair with `has_aux`.
    """
    if not has_aux:
        return _scalar(out), None
    if not (isinstance(out, (tuple, list)) and len(out) == 2):
        raise OperandError(
            f"with has_aux=True the loss function must return a pair of loss and auxiliary data, got {described(out)}"
        )
    return _scalar(out[0]), out[1]


def _scalar(loss: Any) -> jax.Array:
    if isinstance(loss, (tuple, list)):
        raise OperandError(
            f"the loss must be a real floating scalar, got {described(loss)}: pass has_aux=True if the function "
            "returns auxiliary data too"
        )
    loss = as_loss(loss)
    if np.shape(loss) != ():
        raise OperandError(f"the loss must be a real floating scalar, got {described(loss)}: return loss.mean()")
    return loss


def as_loss(loss: Any) -> jax.Array:
    """Convert a loss to a JAX array; a Python float is a constant with zero gradients.

    Raises:
        OperandError: if the loss is not real floating.
    """
    if type(loss) is float:
        return jnp.float32(loss)
    if not is_floating(loss):
        raise OperandError(
            f"the loss must be a real floating scalar, got {described(loss)}: use {as_real_floating('loss', loss)}"
        )
    return jnp.asarray(loss)


def rescale(tree: Any, scale: jax.Array) -> Any:
    """Multiply gradients by the scale in at least float32, as the backward pass of the scaled loss would."""
    return _with_scale(operator.mul, tree, scale)


def unscale(tree: Any, scale: jax.Array) -> Any:
    """Divide the gradients of a scaled loss by the scale, in at least float32."""
    return _with_scale(operator.truediv, tree, scale)


def _with_scale(combine: Callable[[Any, Any], Any], tree: Any, scale: jax.Array) -> Any:
    def combined(leaf: Any) -> Any:
        wide = widen(leaf)
        return combine(wide, scale.astype(wide.dtype))

    return jax.tree.map(combined, tree)
