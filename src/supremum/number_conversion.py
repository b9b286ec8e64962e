"""The conversion of Python numbers to formats, and the changes of their values.

Frameworks convert a number through one or more formats, and round it in each: JAX converts to int64 or float64 first,
PyTorch converts to 16 bits through float32. `converted` does the same, exactly, for any formats; the rule sets name
them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from supremum.formats import Format, Nan, as_format
from supremum.operands import Scalar

if TYPE_CHECKING:
    from fractions import Fraction

Steps = tuple[Format, ...]
"""The formats that a number is converted to, one after the other; real ones, for each component of a complex number."""
HOWS: tuple[str, ...] = ("wraps", "overflows", "underflows", "rounds")
"""The ways in which a number changes, worst first; see `NumberChange`."""
_FLOAT32, _FLOAT64, _BFLOAT16 = (as_format(name) for name in ("float32", "float64", "bfloat16"))


class NumberChange(NamedTuple):
    """A Python number that an operation computes with as another number.

    Args:
        position: the index of the operand.
        value: the number.
        becomes: what the operation computes with instead.
        how: `"wraps"` for an int that an integer format does not hold; `"overflows"` for a number that becomes
            infinite, NaN, or the largest number of a format that has neither; `"underflows"` for one that becomes
            zero; `"rounds"` for an int that a float format does not hold exactly, and for a float so small that it
            keeps fewer digits than the format has for others (1e-7 in float16). Rounding a float to the nearest
            number of its new format, such as 0.1 to float32, does not count as a change.
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
    """
    row = target.component
    if row is _BFLOAT16:
        return (_FLOAT32, row) if category == "float" else (_FLOAT64, _FLOAT32, row)
    return (_FLOAT64, row) if row is _FLOAT32 and category in ("bool", "integer") else (row,)


def converted(value: Scalar, steps: Sequence[Format]) -> Scalar:
    """Convert a number to several formats, one after the other.

    Integer formats wrap around. Float formats round to nearest, ties to even; without an infinity they
    overflow to NaN, and without NaN too, to their largest number.

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
    """
    if isinstance(value, complex) or isinstance(becomes, complex):
        pairs = ((value.real, becomes.real), (value.imag, becomes.imag))
        found = {_change(*pair, target.component) for pair in pairs}
        return next((how for how in HOWS if how in found), None)
    return _change(value, becomes, target)


def _change(value: int | float, becomes: int | float, target: Format) -> str | None:
    from fractions import Fraction  # import it only if a call has numbers

    if value == becomes or (isinstance(value, float) and math.isnan(value)):
        return None
    if not target.is_inexact:
        return "wraps"
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
        value = _rounded(value, row) if row.is_inexact else _wrapped(int(value), row)
    return value


def _wrapped(value: int, row: Format) -> int:
    if row.category == "bool":
        return int(bool(value))
    wrapped = value % 2**row.bits
    return wrapped - 2**row.bits if wrapped > row.max else wrapped


def _rounded(value: int | float, row: Format) -> float:
    if not row.signed and value < 0:
        return math.nan
    if isinstance(value, float) and not math.isfinite(value):
        return value if math.isnan(value) else _beyond(row, value)
    if value == 0 and row.zero:
        return float(value)
    from fractions import Fraction

    exact = Fraction(value)
    # The exponent of the value or of the subnormals; a format without zero rounds to its smallest number.
    exponent = max(_exponent(abs(exact)), row.min_exponent)
    unit = Fraction(2) ** (exponent - row.mantissa)
    nearest = round(exact / unit) * unit
    if abs(nearest) > Fraction(row.max):
        return _beyond(row, value)
    return math.copysign(float(nearest) if nearest or row.zero else row.smallest_subnormal, value)


def _exponent(magnitude: Fraction) -> int:
    if not magnitude:
        return -(10**6)
    found = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    is_reached = magnitude.numerator << max(-found, 0) >= magnitude.denominator << max(found, 0)
    return found if is_reached else found - 1


def _beyond(row: Format, value: int | float) -> float:
    if row.inf:
        return math.inf if value > 0 else -math.inf
    largest = float(row.max)
    return math.nan if row.nan is not Nan.NONE else largest if value > 0 else -largest
