"""Reductions with a library's function in the dtype to accumulate in."""

from __future__ import annotations

from math import prod
from typing import Any

from supremum.arrays.backends import Backend, Raw
from supremum.formats import as_format

# Functions with an argument for the dtype to accumulate in; the others accumulate in the dtype of their argument.
_SUMS = ("sum", "prod", "cumulative_sum", "cumulative_prod")


def reduce(backend: Backend, x: Raw, *, name: str, agrees: bool = False, **options: Any) -> Raw:
    """A reduction of an array in the dtype of the array.

    Args:
        backend: the library.
        x: the array.
        name: of the reduction.
        agrees: whether the library by itself decides as the rules do.
        options: of the function.
    """
    dtype = backend.dtype_of(x)
    if name == "mean" and not as_format(dtype).is_inexact and not agrees:
        return _mean_of_integers(backend, x, **options)
    if name in _SUMS and not agrees:
        options["dtype"] = backend.native_dtype(dtype)
    return getattr(backend.xp, name)(x, **options)


def _mean_of_integers(backend: Backend, x: Raw, *, axis: Any = None, keepdims: bool = False) -> Raw:
    """The mean of integers, rounded towards zero as in C."""
    xp = backend.xp
    total = xp.sum(x, axis=axis, keepdims=keepdims, dtype=backend.native_dtype(backend.dtype_of(x)))
    count = max(1, prod(x.shape)) // max(1, prod(total.shape))
    quotient = xp.floor_divide(total, count)
    is_cut = (total < 0) & (quotient * count != total)
    return xp.where(is_cut, quotient + 1, quotient)
