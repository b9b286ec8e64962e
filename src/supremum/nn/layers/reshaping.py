"""Layers that change the shape of inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

import jax

from supremum.errors import ArgumentError, shown
from supremum.nn.functional.dtype_promotion import promote_arrays
from supremum.nn.functional.shape_checks import all_whole
from supremum.nn.layer import Layer
from supremum.nn.layer_types import LayerOptions
from supremum.typing import ArrayLike


class Flatten(Layer):
    """Flatten all axes except the batch into one.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Flatten()(jnp.ones((2, 8, 8, 3))).shape
    (2, 192)
    """

    def call(self, x: jax.Array) -> jax.Array:
        """Reshape the inputs to (batch, n)."""
        x = _with_batch(x)
        batch, *sizes = x.shape
        return x.reshape(batch, math.prod(sizes))


class Reshape(Layer):
    """Reshape all axes except the batch.

    Args:
        target_shape: the shape without the batch; one size may be -1, which is then inferred.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for an invalid shape, or a different number of values than the inputs have; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> Reshape((4, -1))(jnp.ones((2, 8, 3))).shape
    (2, 4, 6)
    """

    def __init__(self, target_shape: Sequence[int], **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        sizes = all_whole(target_shape)
        if sizes is None or any(size < -1 for size in sizes) or sizes.count(-1) > 1:
            raise ArgumentError(
                f"target_shape must be a tuple of sizes, of which one may be -1, got {shown(target_shape)}; "
                "use target_shape=(-1,)"
            )
        self.target_shape = sizes

    def call(self, x: jax.Array) -> jax.Array:
        """Reshape the inputs to (batch, *target_shape)."""
        x = _with_batch(x)
        batch, *sizes = x.shape
        known = math.prod(size for size in self.target_shape if size != -1)
        count = math.prod(sizes)
        left = count // known if known and -1 in self.target_shape else 1
        if known * left != count:
            raise ArgumentError(
                f"target_shape must have the {count} values of the input shape {tuple(sizes)}, got "
                f"{self.target_shape}; use target_shape=(-1,)"
            )
        return x.reshape(batch, *(left if size == -1 else size for size in self.target_shape))


class Permute(Layer):
    """Permute all axes except the batch, which is axis 0.

    Args:
        dims: the new order of axes, as numbers from 1: `(2, 1)` swaps the two axes after the batch.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for numbers that are not a permutation of the axes of the inputs; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> Permute((2, 1))(jnp.ones((2, 8, 3))).shape
    (2, 3, 8)
    """

    def __init__(self, dims: Sequence[int], **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        order = all_whole(dims)
        if order is None or sorted(order) != list(range(1, len(order) + 1)):
            raise ArgumentError(f"dims must have each axis from 1 on exactly once, got {shown(dims)}; use dims=(2, 1)")
        self.dims = order

    def call(self, x: jax.Array) -> jax.Array:
        """Permute the axes of the inputs."""
        x = _with_batch(x)
        if x.ndim != len(self.dims) + 1:
            raise ArgumentError(f"inputs must have {len(self.dims) + 1} axes for dims={self.dims}, got shape {x.shape}")
        return x.transpose(0, *self.dims)


def _with_batch(x: ArrayLike) -> Any:
    # An array of NumPy keeps its 64 bits.
    array: Any = x if hasattr(x, "ndim") else promote_arrays(x, inexact=False)[0]
    if array.ndim < 1:
        raise ArgumentError("inputs must have a batch axis, got a number; use x[None]")
    return array
