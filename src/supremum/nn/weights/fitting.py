"""Casts of weights to the dtype of a variable, which by default must be exact."""

from __future__ import annotations

import numpy as np

from supremum.arrays import converted
from supremum.formats import Format, as_format
from supremum.nn.weights.pieces import Array


def dtype_problem(array: Array, wanted: Format, cast: bool) -> str:
    """The reason why an array cannot be cast to the format of a variable; empty if it can.

    Args:
        array: the array.
        wanted: the format of the variable.
        cast: whether to round.

    >>> float16 = as_format("float16")
    >>> dtype_problem(np.array([0.5, 2.0]), float16, cast=False)
    ''
    >>> dtype_problem(np.array([0.1]), float16, cast=False)
    'float16 cannot hold 0.1 exactly; cast=True rounds it'
    >>> dtype_problem(np.array([1e6]), float16, cast=True)
    'float16 cannot hold 1000000.0; give the layer a wider variable dtype'
    """
    source = as_format(array.dtype)
    if source.is_inexact == wanted.is_inexact and wanted.holds(source):
        return ""
    if source.category != wanted.category:
        return f"the variable is {wanted}"
    is_float = source.category == "float"
    lost = first_lost(array, wanted, rounding=cast and is_float)
    if not lost:
        return ""
    if cast and is_float:
        return f"{wanted} cannot hold {lost}; give the layer a wider variable dtype"
    return f"{wanted} cannot hold {lost} exactly{'; cast=True rounds it' if is_float else ''}"


def first_lost(array: Array, wanted: Format, *, rounding: bool = True) -> str:
    """The first value that a cast would make infinite or NaN, or finite again; empty if there is none.

    Args:
        array: the array.
        wanted: the format that it is cast to.
        rounding: whether a finite value may become another one.

    >>> (
    ...     first_lost(np.array([1.0, 1e6]), as_format("float16")),
    ...     first_lost(np.array([0.1]), as_format("float16")),
    ... )
    ('1000000.0', '')
    """
    if rounding:
        array = converted(array, np.dtype("float64"))
    with np.errstate(all="ignore"):
        before = array.reshape(-1)
        after = converted(converted(before, wanted.dtype), before.dtype)
        is_lost = (before != after) & ~((before != before) & (after != after))  # NaN differs from itself
        if rounding:
            is_in_range = np.abs(before) <= wanted.max  # formats without infinity may saturate at their largest number
            is_lost &= ~(np.isfinite(before) & np.isfinite(after) & (is_in_range | wanted.inf))
    return str(before[is_lost][0]) if np.any(is_lost) else ""
