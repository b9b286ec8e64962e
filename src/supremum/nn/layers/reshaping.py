"""Layers that change the shape of inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import jax

from supremum.errors import ArgumentError, shown
from supremum.nn.functional import all_whole
from supremum.nn.layer import Layer, LayerOptions


class Flatten(Layer):
    """Everything but the batch in one axis.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def call(self, x: jax.Array) -> jax.Array:
        """The same values, shape (batch, n)."""
        batch, *sizes = _with_batch(x)
        return x.reshape(batch, math.prod(sizes))


class Reshape(Layer):
    """The same values in another shape; the batch stays.

    Args:
        target_shape: the shape without the batch; one size may be -1, for what is left.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for an invalid shape, or one with a different number of values than the inputs; a `ValueError`.
    """

    def __init__(self, target_shape: Sequence[int], **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        sizes = all_whole(target_shape)
        if sizes is None or any(size < -1 for size in sizes) or sizes.count(-1) > 1:
            raise ArgumentError(
                f"target_shape is a tuple of sizes, of which one may be -1, not {shown(target_shape)}: "
                "give target_shape=(-1,)"
            )
        self.target_shape = sizes

    def call(self, x: jax.Array) -> jax.Array:
        """The same values, shape (batch, *target_shape)."""
        batch, *sizes = _with_batch(x)
        known = math.prod(size for size in self.target_shape if size != -1)
        count = math.prod(sizes)
        left = count // known if known and -1 in self.target_shape else 1
        if known * left != count:
            raise ArgumentError(
                f"{count} values for each of the batch, of shape {tuple(sizes)}, do not have shape "
                f"{self.target_shape}: give target_shape=(-1,)"
            )
        return x.reshape(batch, *(left if size == -1 else size for size in self.target_shape))


class Permute(Layer):
    """The axes in another order; the batch, which is axis 0, stays.

    Args:
        dims: which axis comes where, as numbers from 1: `(2, 1)` swaps the two axes after the batch.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for numbers that are not a permutation of the axes of the inputs; a `ValueError`.
    """

    def __init__(self, dims: Sequence[int], **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        order = all_whole(dims)
        if order is None or sorted(order) != list(range(1, len(order) + 1)):
            raise ArgumentError(f"dims has each of the axes from 1 on once, not {shown(dims)}: give dims=(2, 1)")
        self.dims = order

    def call(self, x: jax.Array) -> jax.Array:
        """The same values in the new order."""
        if len(_with_batch(x)) != len(self.dims) + 1:
            raise ArgumentError(f"dims={self.dims} takes inputs of {len(self.dims) + 1} axes, not of shape {x.shape}")
        return x.transpose(0, *self.dims)


def _with_batch(x: jax.Array) -> tuple[int, ...]:
    if x.ndim < 1:
        raise ArgumentError("this takes inputs with an axis of the batch, not a number: give x[None]")
    return x.shape
