"""Pooling: one value for each window, channels last."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Unpack

import jax

from supremum.nn.functional import (
    POOL_PADDINGS,
    Ints,
    Padding,
    as_padding,
    avg_pool,
    global_average_pool,
    global_max_pool,
    max_pool,
    min_pool,
    positive_ints,
    window_size,
)
from supremum.nn.layer import Layer, LayerOptions


class PoolOptions(LayerOptions, total=False):
    """The keyword arguments of every layer with a window, documented in `MaxPool`."""

    strides: Ints | None
    padding: Padding


class _Pool(Layer):
    """What the layers with a window have in common."""

    def __init__(
        self,
        window: Sequence[int],
        *,
        strides: Ints | None = None,
        padding: Padding = "VALID",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.window = window_size("window", window)
        count = len(self.window)
        self.strides = self.window if strides is None else positive_ints("strides", strides, count)
        self.padding = as_padding(padding, count, POOL_PADDINGS)

    @abstractmethod
    def call(self, x: Any) -> jax.Array:
        """The values of the windows."""


class MaxPool(_Pool):
    """The largest value of each window, channels last; integers stay integers.

    Args:
        window: size of the window, one number per dimension of space.
        strides: its step, one number or one per dimension of space; None for windows that touch.
        padding: `"VALID"`, `"SAME"`, a number of positions on every side, or pairs of numbers for each dimension of
            space; what is added is smaller than every value.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for options that make no sense or do not fit the inputs; a `ValueError`.
        OperandError: for complex inputs, which have no order; a `TypeError`.
    """

    def call(self, x: Any) -> jax.Array:
        """The maxima, in the dtype of the inputs."""
        return max_pool(x, self.window, strides=self.strides, padding=self.padding)


class MinPool(_Pool):
    """The smallest value of each window, channels last; integers stay integers.

    Args:
        window: size of the window, one number per dimension of space.
        strides: its step, one number or one per dimension of space; None for windows that touch.
        padding: `"VALID"`, `"SAME"`, a number of positions on every side, or pairs of numbers for each dimension of
            space; what is added is larger than every value.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for options that make no sense or do not fit the inputs; a `ValueError`.
        OperandError: for complex inputs, which have no order; a `TypeError`.
    """

    def call(self, x: Any) -> jax.Array:
        """The minima, in the dtype of the inputs."""
        return min_pool(x, self.window, strides=self.strides, padding=self.padding)


class AvgPool(_Pool):
    """The mean of each window, channels last, added up in at least float32 and rounded once.

    Args:
        window: size of the window, one number per dimension of space.
        strides: its step, one number or one per dimension of space; None for windows that touch.
        padding: `"VALID"`, `"SAME"`, a number of zeros on every side, or pairs of numbers for each dimension of space.
        count_include_pad: whether those zeros count as values of the window, or the mean is of the inputs alone.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.

    Raises:
        ArgumentError: for options that make no sense or do not fit the inputs; a `ValueError`.
    """

    def __init__(
        self, window: Sequence[int], *, count_include_pad: bool = True, **options: Unpack[PoolOptions]
    ) -> None:
        super().__init__(window, **options)
        self.count_include_pad = count_include_pad

    def call(self, x: Any) -> jax.Array:
        """The means, in the compute dtype."""
        return avg_pool(
            x,
            self.window,
            strides=self.strides,
            padding=self.padding,
            count_include_pad=self.count_include_pad,
            dtype=self.compute_dtype,
        )


class GlobalAveragePool(Layer):
    """The mean of each channel, channels last, added up in at least float32 and rounded once.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def call(self, x: Any) -> jax.Array:
        """The means, shape (batch, channels), in the compute dtype."""
        return global_average_pool(x, dtype=self.compute_dtype)


class GlobalMaxPool(Layer):
    """The largest value of each channel, channels last.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def call(self, x: Any) -> jax.Array:
        """The maxima, shape (batch, channels), in the dtype of the inputs."""
        return global_max_pool(x)
