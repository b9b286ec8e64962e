"""Reductions by a library's function, with the dtype to accumulate in."""

from __future__ import annotations

from typing import Any

from supremum.arrays.backends import Backend, Raw
from supremum.formats import as_format

_SUMS = ("sum", "prod", "cumulative_sum", "cumulative_prod")
"""Functions with an argument for the dtype to accumulate in; others compute in the dtype of their argument."""


def reduce(backend: Backend, x: Raw, *, name: str, agrees: bool = False, **options: Any) -> Raw:
    """The library's function of an array in the dtype that it is accumulated in.

    Args:
        backend: the library.
        x: the array.
        name: of the reduction.
        agrees: whether the library, left to itself, decides as the rules do.
        options: of the function.
    """
    dtype = backend.dtype_of(x)
    if name == "mean" and not as_format(dtype).is_inexact and not agrees:
        return _mean_of_integers(backend, x, **options)
    if name in _SUMS and not agrees:
        options["dtype"] = backend.native_dtype(dtype)
    return getattr(backend.xp, name)(x, **options)


def _mean_of_integers(backend: Backend, x: Raw, *, axis: Any = None, keepdims: bool = False) -> Raw:
    """The mean of integers, rounded towards zero as C does it."""
    xp = backend.xp
    total = xp.sum(x, axis=axis, keepdims=keepdims, dtype=backend.native_dtype(backend.dtype_of(x)))
    count = max(1, x.size if isinstance(x.size, int) else x.numel()) // max(1, _size(total))
    quotient = xp.floor_divide(total, count)
    is_cut = (total < 0) & (quotient * count != total)
    return xp.where(is_cut, quotient + 1, quotient)


def _size(raw: Raw) -> int:
    size = 1
    for length in raw.shape:
        size *= length
    return size
