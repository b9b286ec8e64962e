"""Pooling: one value for each window, channels last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from supremum.argument_checks import flag
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.nn.functional.convolution import Padding, Pads, as_padding, check_space, pads_of
from supremum.nn.functional.dtype_promotion import promote_and_widen, promote_arrays, refuse_complex
from supremum.nn.functional.shape_checks import Ints, positive_ints, window_size
from supremum.typing import ArrayLike, DTypeLike

POOL_PADDINGS = ("SAME", "VALID")
"""The names of paddings for pooling."""


def max_pool(
    x: ArrayLike, window: Sequence[int], *, strides: Ints | None = None, padding: Padding = "VALID"
) -> jax.Array:
    """The largest value of each window.

    Args:
        x: inputs, shape (batch, *space, channels), of any real dtype.
        window: the size of the window, one number per dimension of space.
        strides: the step of the window, one number or one per dimension of space; None for adjacent windows.
        padding: `"VALID"`, for none; `"SAME"`, for one output per stride of the inputs; or numbers, see
            `supremum.nn.functional.convolution.Padding`. The padding is smaller than every value.

    Returns:
        An array of shape (batch, *space, channels) in the dtype of `x`.

    Raises:
        ArgumentError: for shapes and options that do not match; a `ValueError`.
        OperandError: for complex values, which have no order; a `TypeError`.

    >>> max_pool(jnp.asarray([1, 5, -2, 3], "int8").reshape(1, 4, 1), (2,)).ravel()
    Array([5, 3], dtype=int8)
    """
    refuse_complex("max_pool", x=x)
    (x,) = promote_arrays(x, inexact=False)
    row = as_format(x.dtype)
    window, strides, pads = _geometry(x, window, strides, padding)
    # JAX recognizes the smallest value, and can differentiate the function, only if it is a NumPy scalar.
    start = np.asarray(-math.inf if row.inf else row.min, row.dtype)[()]
    return lax.reduce_window(x, start, lax.max, (1, *window, 1), (1, *strides, 1), _around(pads))


def avg_pool(
    x: ArrayLike,
    window: Sequence[int],
    *,
    strides: Ints | None = None,
    padding: Padding = "VALID",
    count_include_pad: bool = True,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """The mean of each window, accumulated in at least float32 and rounded once.

    Args:
        x: inputs, shape (batch, *space, channels).
        window: the size of the window, one number per dimension of space.
        strides: the step of the window, one number or one per dimension of space; None for adjacent windows.
        padding: as for `max_pool`; the padding is zero.
        count_include_pad: whether the mean includes the padding or only the inputs.
        dtype: the dtype of the result; None for the dtype of `x`, or at least float32 for integers and bools.

    Returns:
        An array of shape (batch, *space, channels) in that dtype.

    Raises:
        ArgumentError: for shapes and options that do not match; a `ValueError`.

    >>> x = jnp.full((1, 4, 1), 6e4, "float16")
    >>> (
    ...     avg_pool(x, (2,)).ravel().tolist(),
    ...     avg_pool(x, (3,), strides=2, padding="SAME").ravel().tolist(),
    ... )
    ([60000.0, 60000.0], [60000.0, 40000.0])
    """
    target, (x,) = promote_and_widen(x, dtype=dtype)
    window, strides, pads = _geometry(x, window, strides, padding)
    flag("count_include_pad", count_include_pad)
    total = lax.reduce_window(x, np.zeros((), x.dtype)[()], lax.add, (1, *window, 1), (1, *strides, 1), _around(pads))
    if count_include_pad:
        return (total / math.prod(window)).astype(target)
    counts = np.ones((1,) * x.ndim)
    for axis, (size, span, step, (before, _)) in enumerate(zip(x.shape[1:-1], window, strides, pads, strict=True), 1):
        starts = np.arange(total.shape[axis]) * step - before
        present = np.minimum(starts + span, size) - np.maximum(starts, 0)
        counts = counts * present.reshape([-1 if each == axis else 1 for each in range(x.ndim)])
    return (total / jnp.asarray(counts, x.dtype)).astype(target)


def global_max_pool(x: ArrayLike) -> jax.Array:
    """The largest value of each channel.

    Args:
        x: inputs, shape (batch, *space, channels), of any real dtype.

    Returns:
        An array of shape (batch, channels) in the dtype of `x`.

    Raises:
        ArgumentError: if there are no spatial dimensions, or no positions in them; a `ValueError`.
        OperandError: for complex values, which have no order; a `TypeError`.

    >>> global_max_pool(jnp.asarray([[[1, -4], [3, -5]]]))
    Array([[ 3, -4]], dtype=int32)
    """
    refuse_complex("global_max_pool", x=x)
    (x,) = promote_arrays(x, inexact=False)
    return jnp.max(x, _space(x))


def global_average_pool(x: ArrayLike, *, dtype: DTypeLike | None = None) -> jax.Array:
    """The mean of each channel, accumulated in at least float32 and rounded once.

    Args:
        x: inputs, shape (batch, *space, channels).
        dtype: the dtype of the result; None for the dtype of `x`, or at least float32 for integers and bools.

    Returns:
        An array of shape (batch, channels) in that dtype.

    Raises:
        ArgumentError: if there are no spatial dimensions, or no positions in them; a `ValueError`.

    >>> global_average_pool(jnp.full((1, 2, 2, 1), 6e4, "float16")).tolist()
    [[60000.0]]
    """
    target, (x,) = promote_and_widen(x, dtype=dtype)
    return jnp.mean(x, _space(x)).astype(target)


def _geometry(x: jax.Array, window: Any, strides: Any, padding: Any) -> tuple[tuple[int, ...], tuple[int, ...], Pads]:
    window = window_size("window", window)
    count = len(window)
    check_space(x.shape, count, "window=", window)
    strides = window if strides is None else positive_ints("strides", strides, count)
    sizes = x.shape[1:-1]
    pads = pads_of(as_padding(padding, count, POOL_PADDINGS), sizes, window, strides)
    for size, span, pad in zip(sizes, window, pads, strict=True):
        if max(pad) >= span or (size == 0 and max(pad) > 0):
            raise ArgumentError(
                f"every window must contain an input, got padding {pad} around {size} positions for windows of "
                f"{span}; use padding='VALID'"
            )
    return window, strides, pads


def _around(pads: Pads) -> list[tuple[int, int]]:
    return [(0, 0), *pads, (0, 0)]


def _space(x: jax.Array) -> tuple[int, ...]:
    if x.ndim < 3 or 0 in x.shape[1:-1]:
        raise ArgumentError(
            f"global pooling needs inputs of shape (batch, *space, channels) with at least one position, got {x.shape}"
        )
    return tuple(range(1, x.ndim - 1))
