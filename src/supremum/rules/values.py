"""Python numbers against the range of a format, exactly, for rule sets that look at values."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from functools import cache
from typing import NamedTuple

from supremum.formats import FORMATS, Format, Nan
from supremum.operands import Scalar


class _Range(NamedTuple):
    """The numbers a format takes in: from `low` to `high`, ends included where `closed`."""

    low: int | float
    high: int | float
    closed: bool

    def takes(self, value: float) -> bool:
        return self.low <= value <= self.high if self.closed else self.low < value < self.high


@cache
def _range(row: Format) -> _Range:
    if not row.is_inexact:
        return _Range(row.min, row.max, closed=True)
    gap = 2.0 ** (row.max_exponent - row.mantissa)  # between the largest numbers of the format
    # Halfway to the number that would come next. In Python's integers where it can be, as float64's own is no float.
    high = row.max + gap / 2 if gap < 2 else int(row.max) + int(gap) // 2
    # A tie goes to the even neighbour: down to the largest number only where that is even.
    return _Range(-high if row.signed else row.min, high, closed=row.max / gap % 2 == 0)


_BOUNDARIES: tuple[int | float, ...] = tuple(sorted({end for row in FORMATS for end in _range(row)[:2]}))


def fits(value: Scalar, row: Format) -> bool:
    """Whether a Python number is within the range of a format, after rounding to nearest but whatever it rounds to.

    Args:
        value: the number; both components of a complex one have to be within the range.
        row: the format.

    Returns:
        True where the number, rounded, is a finite number of the format, and for inf and nan where it has them.

    >>> from supremum.formats import as_format
    >>> fits(128, as_format("int8")), fits(65519.9, as_format("float16")), fits(65520, as_format("float16"))
    (False, True, False)
    """
    if isinstance(value, complex):
        return fits(value.real, row) and fits(value.imag, row)
    if isinstance(value, float) and not math.isfinite(value):
        return row.nan is not Nan.NONE if math.isnan(value) else row.inf
    return _range(row).takes(value)


def interval(value: Scalar) -> Hashable:
    """What has to be known of a Python number to say in which formats it fits: the same for all numbers that agree.

    Args:
        value: the number.

    Returns:
        A key; two numbers of one type with the same key fit the same formats.

    >>> interval(300) == interval(301), interval(255) == interval(256)
    (True, False)
    """
    if isinstance(value, complex):
        return interval(value.real), interval(value.imag)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf"
    # Even between two boundaries, odd on one, so that it does not matter on which side the boundary itself falls.
    return bisect_left(_BOUNDARIES, value) + bisect_right(_BOUNDARIES, value)
