"""Python numbers in formats: which formats a number fits, and what it becomes when it is converted to them.

Frameworks convert a number through one or more formats, and round it in each: JAX converts to int64 or float64 first,
PyTorch converts to 16 bits through float32. `converted` does the same, exactly, for any formats; the rule sets name
them.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from supremum.formats import FORMATS, Format, Nan, as_format
from supremum.typing import Scalar

if TYPE_CHECKING:
    from fractions import Fraction

Steps = tuple[Format, ...]
"""The formats that a number is converted to, one after the other; real ones, for each component of a complex number.

>>> steps: Steps = (as_format("float32"), as_format("float16"))
>>> converted(65519.9999, steps)
inf
"""
HOWS: tuple[str, ...] = ("wraps", "overflows", "underflows", "rounds")
"""The ways in which a number changes, worst first; see `NumberChange`.

>>> min(["rounds", "overflows"], key=HOWS.index)
'overflows'
"""
_INT64, _FLOAT32, _FLOAT64, _BFLOAT16 = map(as_format, ("int64", "float32", "float64", "bfloat16"))


class NumberChange(NamedTuple):
    """A Python number that an operation computes with as another number.

    Args:
        position: the index of the operand.
        value: the number.
        becomes: what the operation computes with instead.
        how: `"wraps"` for an int that an integer format does not hold; `"overflows"` for a number that becomes
            infinite, NaN, or the largest number of a format that has neither; `"underflows"` for one that becomes
            zero; `"rounds"` for an int that a float format does not hold exactly, for a float whose fraction an integer
            format drops, and for a float so small that it keeps fewer digits than the format has for others (1e-7 in
            float16). Rounding a float to the nearest number of its new format, such as 0.1 to float32, does not count
            as a change.

    >>> from supremum import explain
    >>> print(*explain("float16", 1e6, operation="add", rules="torch").number_changes)
    overflows to inf
    >>> print(*explain("uint8", -1, operation="add", rules="torch").number_changes)
    wraps to 255
    """

    position: int
    value: Scalar
    becomes: Scalar
    how: str

    def __str__(self) -> str:
        return f"{self.how} to {self.becomes}"


def usual_steps(category: str, target: Format) -> Steps:
    """The formats through which NumPy and ml_dtypes convert a number when they make a scalar of it.

    Args:
        category: the category of the number.
        target: the format to convert to.

    Source: measured with NumPy 2 and ml_dtypes 0.6.

    >>> [str(row) for row in usual_steps("integer", as_format("bfloat16"))]
    ['float64', 'float32', 'bfloat16']
    """
    row = target.component
    if row is _BFLOAT16:
        return (_FLOAT32, row) if category == "float" else (_FLOAT64, _FLOAT32, row)
    return (_FLOAT64, row) if row is _FLOAT32 and category in ("bool", "integer") else (row,)


def converted(value: Scalar, steps: Sequence[Format]) -> Scalar:
    """Convert a number to several formats, one after the other.

    Integer formats wrap around, and bool holds whether a number is not zero. Float formats round to nearest, ties to
    even; without an infinity they overflow to NaN, and without NaN too, to their largest number. A format without NaN
    makes it -0, and one without zero makes that NaN, as ml_dtypes does.

    Args:
        value: the number.
        steps: the formats.

    >>> converted(1000, [as_format("int8")]), converted(1e6, [as_format("float16")])
    (-24, inf)
    >>> float32, float16 = as_format("float32"), as_format("float16")
    >>> converted(65519.9999, [float16]), converted(65519.9999, [float32, float16])
    (65504.0, inf)
    """
    if isinstance(value, complex):
        steps = tuple(steps)
        return complex(*(float(_real(part, steps)) for part in (value.real, value.imag)))
    return _real(value, steps)


def change(value: Scalar, becomes: Scalar, target: Format) -> str | None:
    """The way in which a number changes, as in `NumberChange.how`; None if it does not change.

    Args:
        value: the number.
        becomes: the converted number.
        target: the last format of the conversion.

    >>> (
    ...     change(1000, -24, as_format("int8")),
    ...     change(2**24 + 1, 2.0**24, as_format("float32")),
    ... )
    ('wraps', 'rounds')
    >>> change(  # rounded as every float is
    ...     0.1, converted(0.1, [as_format("float32")]), as_format("float32")
    ... )
    """
    if isinstance(value, complex) or isinstance(becomes, complex):
        pairs = ((value.real, becomes.real), (value.imag, becomes.imag))
        changes = {_change(*pair, target.component) for pair in pairs}
        return next((how for how in HOWS if how in changes), None)
    return _change(value, becomes, target)


def _change(value: int | float, becomes: int | float, target: Format) -> str | None:
    from fractions import Fraction  # import it only if a call has numbers

    if value == becomes or (isinstance(value, float) and math.isnan(value) and math.isnan(becomes)):
        return None
    if target.category == "bool":
        if bool(value) == becomes:
            return None  # whether a number is zero is all that was asked
        return "wraps" if isinstance(value, int) else "underflows"
    if not target.is_inexact:
        is_truncated = isinstance(value, float) and math.isfinite(value) and math.trunc(value) == becomes
        return "rounds" if is_truncated else "wraps"
    if not math.isfinite(becomes) or (isinstance(value, float) and math.isinf(value)):
        return "overflows"
    if becomes == 0:
        return "underflows"
    lost = abs(Fraction(value) - Fraction(becomes))
    if abs(becomes) == target.max and lost > Fraction(2) ** (target.max_exponent - target.mantissa) / 2:
        return "overflows"
    if isinstance(value, int):
        return "rounds"
    return "rounds" if lost > abs(Fraction(becomes)) * Fraction(target.eps) / 2 else None


def _real(value: int | float, steps: Sequence[Format]) -> int | float:
    for row in steps:
        value = _rounded(value, row) if row.is_inexact else _wrapped(value, row)
    return value


def _wrapped(value: int | float, row: Format) -> int:
    if row.category == "bool":
        return int(bool(value))
    value = int(value)
    wrapped = value % 2**row.bits
    return wrapped - 2**row.bits if wrapped > row.max else wrapped


def _rounded(value: int | float, row: Format) -> int | float:
    if not row.signed and value < 0:
        return math.nan
    if isinstance(value, float) and math.isnan(value):
        # ml_dtypes and XLA make it -0 in a format without NaN.
        return value if row.nan is not Nan.NONE else -0.0
    if isinstance(value, float) and math.isinf(value):
        return _beyond(row, value)
    if value == 0:
        # A format whose NaN is the pattern of -0 has one zero; float8_e8m0fnu has none, and zero becomes NaN.
        return math.nan if not row.zero else 0.0 if row.nan is Nan.NEGATIVE_ZERO else float(value)
    from fractions import Fraction

    exact = Fraction(value)
    # The exponent of the value or of the subnormals; a format without zero rounds to its smallest number.
    exponent = max(_exponent(abs(exact)), row.min_exponent)
    unit = Fraction(2) ** (exponent - row.mantissa)
    nearest = round(exact / unit) * unit
    if abs(nearest) > Fraction(row.max):
        return _beyond(row, value)
    if not nearest and row.nan is Nan.NEGATIVE_ZERO:
        return 0.0
    if isinstance(value, int) and row.mantissa >= sys.float_info.mant_dig:
        return int(nearest)  # a float cannot hold each integer of a wider format
    return math.copysign(float(nearest) if nearest or row.zero else row.smallest_subnormal, value)


def _exponent(magnitude: Fraction) -> int:
    if not magnitude:
        return -(10**6)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    is_reached = magnitude.numerator << max(-exponent, 0) >= magnitude.denominator << max(exponent, 0)
    return exponent if is_reached else exponent - 1


def _beyond(row: Format, value: int | float) -> float:
    if row.inf:
        return math.inf if value > 0 else -math.inf
    largest = float(row.max)
    return math.nan if row.nan is not Nan.NONE else largest if value > 0 else -largest


def is_beyond_integers(value: Scalar, target: Format) -> bool:
    """Whether a format is one of integers, and does not hold the integral part of a value.

    Args:
        value: the value.
        target: the format.

    >>> from supremum.formats import as_format
    >>> [
    ...     is_beyond_integers(value, as_format("int8"))
    ...     for value in (127.9, 128.0, float("nan"))
    ... ]
    [False, True, True]
    """
    if target.category != "integer":
        return False
    return not math.isfinite(value.real) or not target.min <= int(value.real) <= target.max


def fits(value: Scalar, target: Format) -> bool:
    """Whether a Python number is in the range of a format.

    The whole numbers in its range fit an integer format. Numbers that do not round to infinity (or, in a format without
    infinity, past its largest number) fit a float format. A complex format needs the same of both components.
    Infinities and NaN are in the range of every float format. A complex number never fits a real format.

    Args:
        value: the number.
        target: the format.

    >>> from supremum.formats import as_format
    >>> (
    ...     fits(255, as_format("uint8")),
    ...     fits(256, as_format("uint8")),
    ...     fits(1e10, as_format("float16")),
    ... )
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
    >>> (
    ...     stores(2**63, as_format("float32")),
    ...     stores(2**63, as_format("int64")),
    ...     stores(1.5, as_format("int8")),
    ... )
    (True, False, False)
    """
    if may_cut and isinstance(value, float) and math.isfinite(value) and not target.is_inexact:
        value = int(value)
    return fits(value, target) and (not isinstance(value, int) or converts(value, target))


def interval(value: Scalar) -> tuple[int, ...]:
    """A key of a Python number that is equal only for numbers that fit the same formats.

    >>> (
    ...     interval(100) == interval(127),
    ...     interval(127) == interval(128),
    ...     interval(1.0) == interval(1.5),
    ... )
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
    significand = int(row.max / 2.0**unit) if isinstance(row.max, float) else row.max >> unit
    # Half a unit above the maximum; an int where a float would overflow.
    limit = (2 * significand + 1) * 2 ** (unit - 1)
    tie_goes_down = significand % 2 == 0  # ties go to the even neighbour
    low = (-limit, int(not tie_goes_down)) if row.signed else (0, 0)
    return low, (limit, int(tie_goes_down))


@cache
def _cuts() -> list[_Boundary]:
    return sorted(set(chain.from_iterable(map(_range, FORMATS))))
