"""Losses and gradients times a loss scale, and back."""

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
    """Split what a loss function returned into the loss, checked, and its auxiliary data.

    Args:
        out: the loss, or with `has_aux` a pair of loss and auxiliary data, which are otherwise None.
        has_aux: whether the function returns auxiliary data.

    Raises:
        OperandError: if the loss is not a real floating scalar, or `out` is not a pair although it must be one.
    """
    if not has_aux:
        return _scalar(out), None
    if not (isinstance(out, (tuple, list)) and len(out) == 2):
        raise OperandError(
            f"with has_aux=True the function must return a pair of loss and auxiliary data, got {described(out)}"
        )
    return _scalar(out[0]), out[1]


def _scalar(loss: Any) -> jax.Array:
    if isinstance(loss, (tuple, list)):
        raise OperandError(
            f"the loss must be a real floating scalar, got {described(loss)}: write has_aux=True if it comes with "
            "auxiliary data"
        )
    loss = as_loss(loss)
    if np.shape(loss) != ():
        raise OperandError(f"the loss must be a real floating scalar, got {described(loss)}: return loss.mean()")
    return loss


def as_loss(loss: Any) -> jax.Array:
    """A loss as an array of JAX; a Python float is a constant, whose gradients are zero.

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
    """Gradients times the scale, in at least float32: what the backward pass of the scaled loss would have given."""
    return _with_scale(operator.mul, tree, scale)


def unscale(tree: Any, scale: jax.Array) -> Any:
    """Gradients of a scaled loss divided by the scale, in at least float32."""
    return _with_scale(operator.truediv, tree, scale)


def _with_scale(combine: Callable[[Any, Any], Any], tree: Any, scale: jax.Array) -> Any:
    def combined(leaf: Any) -> Any:
        wide = widen(leaf)
        return combine(wide, scale.astype(wide.dtype))

    return jax.tree.map(combined, tree)
