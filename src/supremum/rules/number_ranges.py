"""Which formats a Python number fits, and an interval of numbers that all fit the same formats."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import cache
from itertools import chain

from supremum.formats import FORMATS, Format, as_format
from supremum.operands import Scalar

_INT64, _FLOAT64 = as_format("int64"), as_format("float64")


def fits(value: Scalar, target: Format) -> bool:
    """Whether a Python number is in the range of a format.

    The whole numbers in its range fit an integer format. Numbers that do not round to infinity (or, in a format without
    infinity, past its largest number) fit a float format. A complex format needs the same of both components.
    Infinities and NaN are in the range of every float format. A complex number never fits a real format.

    Args:
        value: the number.
        target: the format.

    >>> from supremum.formats import as_format
    >>> fits(255, as_format("uint8")), fits(256, as_format("uint8")), fits(1e10, as_format("float16"))
    (True, False, False)
    """
    if isinstance(value, complex):
        return target.category == "complex" and fits(value.real, target) and fits(value.imag, target)
    if isinstance(value, float) and not math.isfinite(value):
        return target.is_inexact
    if not target.is_inexact and value != int(value):
        return False
    low, high = _range(target)
    return low <= (value, 0) < high


def converts(value: int, target: Format) -> bool:
    """Whether NumPy converts a Python int to a format without raising; it may round, or overflow to infinity.

    >>> from supremum.formats import as_format
    >>> converts(10**40, as_format("float16")), converts(2**63, as_format("bfloat16"))
    (True, False)
    """
    if not target.is_builtin or target.category == "bool":
        return fits(value, _INT64)  # NumPy reads it as a C integer
    return fits(value, _FLOAT64 if target.is_inexact else target)


def stores(value: Scalar, target: Format, *, may_cut: bool = False) -> bool:
    """Whether `np.asarray(value, target)` returns the number, possibly rounded.

    Args:
        value: the number.
        target: the format.
        may_cut: whether the fraction may be lost too.

    >>> from supremum.formats import as_format
    >>> stores(2**63, as_format("float32")), stores(2**63, as_format("int64")), stores(1.5, as_format("int8"))
    (True, False, False)
    """
    if may_cut and isinstance(value, float) and math.isfinite(value) and not target.is_inexact:
        value = int(value)
    return fits(value, target) and (not isinstance(value, int) or converts(value, target))


def interval(value: Scalar) -> tuple[int, ...]:
    """A key of a Python number that is equal only for numbers that fit the same formats.

    >>> interval(100) == interval(127), interval(127) == interval(128), interval(1.0) == interval(1.5)
    (True, False, False)
    """
    if isinstance(value, complex):
        return (*interval(value.real), *interval(value.imag))
    if isinstance(value, float) and not math.isfinite(value):
        return (-1,)
    return (bisect_right(_cuts(), (value, 0)), int(value != int(value)))


# A boundary between two neighbouring numbers: just below the number (0) or just above it (1).
_Boundary = tuple[int | float, int]


@cache
def _range(row: Format) -> tuple[_Boundary, _Boundary]:
    """The lower and upper boundary of the numbers that fit a format."""
    if not row.is_inexact:
        return (row.min, 0), (row.max, 1)
    unit = row.max_exponent - row.mantissa
    significand = int(row.max / 2.0**unit)
    # Half a unit above the maximum; an int where a float would overflow.
    limit = (2 * significand + 1) * 2 ** (unit - 1)
    tie_goes_down = significand % 2 == 0  # ties go to the even neighbour
    low = (-limit, int(not tie_goes_down)) if row.signed else (0, 0)
    return low, (limit, int(tie_goes_down))


@cache
def _cuts() -> list[_Boundary]:
    return sorted(set(chain.from_iterable(map(_range, FORMATS))))
