"""Pooling: one value for each window, channels last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import jax

from supremum.nn import functional
from supremum.nn.functional.convolution import Padding, Pads, as_padding
from supremum.nn.functional.pooling import POOL_PADDINGS
from supremum.nn.functional.shape_checks import Ints, positive_ints, window_size
from supremum.nn.layer import Layer
from supremum.nn.layer_types import LayerOptions


class PoolOptions(LayerOptions, total=False):
    """The keyword arguments of every layer with a window, documented in `MaxPool`."""

    strides: Ints | None
    padding: Padding


class _Pool(Layer):
    """The common base of pooling layers with a window."""

    def __init__(
        self,
        window: Sequence[int],
        *,
        strides: Ints | None = None,
        padding: Padding = "VALID",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.window: tuple[int, ...] = window_size("window", window)
        count = len(self.window)
        self.strides: tuple[int, ...] = self.window if strides is None else positive_ints("strides", strides, count)
        self.padding: str | Pads = as_padding(padding, count, POOL_PADDINGS)


class MaxPool(_Pool):
    """The largest value of each window, channels last; integers stay integers.

    Args:
        window: the size of the window, one number per dimension of space.
        strides: the step of the window, one number or one per dimension of space; None for adjacent windows.
        padding: `"VALID"`, `"SAME"`, a number of positions on every side, or pairs of numbers for each dimension of
            space; the padding is smaller than every value.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for options that are invalid or do not match the inputs; a `ValueError`.
        OperandError: for complex inputs, which have no order; a `TypeError`.

    >>> import jax.numpy as jnp
    >>> MaxPool((2,))(jnp.array([[[1.0], [3.0], [2.0], [5.0]]])).ravel()
    Array([3., 5.], dtype=float32)
    """

    def call(self, x: jax.Array) -> jax.Array:
        """Compute the maxima, in the dtype of the inputs."""
        return functional.max_pool(x, self.window, strides=self.strides, padding=self.padding)


class AvgPool(_Pool):
    """The mean of each window, channels last, accumulated in at least float32 and rounded once.

    Args:
        window: the size of the window, one number per dimension of space.
        strides: the step of the window, one number or one per dimension of space; None for adjacent windows.
        padding: `"VALID"`, `"SAME"`, a number of zeros on every side, or pairs of numbers for each dimension of space.
        count_include_pad: whether the mean includes the padding or only the inputs.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for options that are invalid or do not match the inputs; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> AvgPool((2,))(jnp.array([[[1.0], [3.0], [2.0], [5.0]]])).ravel()
    Array([2. , 3.5], dtype=float32)
    """

    def __init__(
        self, window: Sequence[int], *, count_include_pad: bool = True, **options: Unpack[PoolOptions]
    ) -> None:
        super().__init__(window, **options)
        self.count_include_pad = count_include_pad

    def call(self, x: jax.Array) -> jax.Array:
        """Compute the means, in the compute dtype."""
        return functional.avg_pool(
            x,
            self.window,
            strides=self.strides,
            padding=self.padding,
            count_include_pad=self.count_include_pad,
            dtype=self.compute_dtype,
        )


class GlobalAveragePool(Layer):
    """The mean of each channel, channels last, accumulated in at least float32 and rounded once.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> GlobalAveragePool()(jnp.ones((2, 8, 8, 3))).shape
    (2, 3)
    """

    def call(self, x: jax.Array) -> jax.Array:
        """Compute the means, shape (batch, channels), in the compute dtype."""
        return functional.global_average_pool(x, dtype=self.compute_dtype)


class GlobalMaxPool(Layer):
    """The largest value of each channel, channels last.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> GlobalMaxPool()(jnp.ones((2, 8, 8, 3))).shape
    (2, 3)
    """

    def call(self, x: jax.Array) -> jax.Array:
        """Compute the maxima, shape (batch, channels), in the dtype of the inputs."""
        return functional.global_max_pool(x)
