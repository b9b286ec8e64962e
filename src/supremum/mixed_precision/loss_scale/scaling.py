"""Gradients times a loss scale, and back."""

from __future__ import annotations

from typing import Any

import jax

from supremum.mixed_precision.tree_casting import at_least_float32


def rescale(tree: Any, scale: jax.Array) -> Any:
    """Gradients times the scale, in at least float32: what the backward pass of the scaled loss would have given."""

    def rescaled(leaf: Any) -> Any:
        wide = at_least_float32(leaf)
        return wide * scale.astype(wide.dtype)

    return jax.tree.map(rescaled, tree)


def unscale(tree: Any, scale: jax.Array) -> Any:
    """Gradients of a scaled loss divided by the scale, in at least float32."""

    def unscaled(leaf: Any) -> Any:
        wide = at_least_float32(leaf)
        return wide / scale.astype(wide.dtype)

    return jax.tree.map(unscaled, tree)
