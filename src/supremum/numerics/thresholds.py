"""What a format does to values of another format, as thresholds on the integer bits of their magnitudes.

The bits of a floating format order its magnitudes. `rank` numbers them: 0 is zero, then follow the finite magnitudes,
infinity and NaN. Whether a value overflows, flushes to zero or becomes subnormal under round to nearest, ties to even,
is therefore a comparison of its rank with an integer, exact and without arithmetic on the value.

The tests compare every value of the 8-bit and 16-bit formats with the casts of NumPy and ml_dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from supremum.formats import DType, Format, Nan, as_format

_Bits = TypeVar("_Bits", jax.Array, "np.ndarray[Any, Any]")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The ranks in a source format at which the values in a target format change.

    Args:
        kept: the lowest rank that does not flush to zero.
        normal: the lowest rank that becomes a normal number; those from `kept` on up to it become subnormal.
        overflow: the lowest rank that overflows; a rank that no finite value has if none does.

    >>> from supremum.formats import as_format
    >>> limits = thresholds(as_format("float32"), as_format("float16"))
    >>> [
    ...     float(value_of_rank(as_format("float32"), rank))
    ...     for rank in (limits.kept, limits.normal, limits.overflow)
    ... ]
    [2.980232594040899e-08, 6.1005353927612305e-05, 65520.0]
    """

    kept: int
    normal: int
    overflow: int


def rank(bits: _Bits, source: Format, choose: Callable[[_Bits, _Bits, _Bits], _Bits]) -> _Bits:
    """The ranks of values.

    Args:
        bits: the bits of the values, as unsigned integers that hold one bit more than the format.
        source: their format.
        choose: `where` of the library that holds the bits.

    Returns:
        Unsigned integers: 0 for zero, up to `last_rank(source)` for finite values, and above it for infinity and NaN.

    >>> import numpy as np
    >>> from supremum.formats import as_format
    >>> rank(
    ...     np.array([0, 1.5, -1.5, np.inf], np.float32).view("uint32"),
    ...     as_format("float32"),
    ...     np.where,
    ... )
    array([         0, 1069547520, 1069547520, 2139095040], dtype=uint32)
    """
    if not source.signed:
        return bits + bits.dtype.type(not source.zero)
    sign = bits.dtype.type(1 << (source.exponent + source.mantissa))
    magnitude = bits & (sign - bits.dtype.type(1))
    return choose(bits == sign, sign, magnitude) if source.nan is Nan.NEGATIVE_ZERO else magnitude


def bits_and_ranks(value: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The bits and the ranks of real floating values, as unsigned integers of 32 bits, or of 64 for float64.

    >>> import jax.numpy as jnp
    >>> bits, ranks = bits_and_ranks(jnp.bfloat16(-1.0))
    >>> hex(bits), hex(ranks), ranks.dtype
    ('0xbf80', '0x3f80', dtype('uint32'))
    """
    source = as_format(value.dtype)
    bits = lax.bitcast_convert_type(value, f"uint{source.bits}").astype(unsigned_of(source))
    return bits, rank(bits, source, jnp.where)


def unsigned_of(source: Format) -> DType:
    """The dtype of the bits and ranks of a format."""
    return np.dtype("uint64" if source.bits > 32 else "uint32")


@lru_cache(maxsize=64)
def last_rank(source: Format) -> int:
    """The rank of the largest finite value of a format.

    >>> from supremum.formats import as_format
    >>> last_rank(as_format("float8_e4m3fn")), hex(last_rank(as_format("float32")))
    (126, '0x7f7fffff')
    """
    return _rank_of(source, Fraction(source.max), math.floor)


def _rank_of(source: Format, magnitude: Fraction, rounding: Callable[[Fraction], int]) -> int:
    """The rank of a magnitude, which may lie between those of two ranks, or above that of the last."""
    exponent = max(_exponent_of(magnitude), source.min_exponent)
    significand = rounding(magnitude / Fraction(2) ** (exponent - source.mantissa))
    return ((exponent - source.min_exponent) << source.mantissa) + significand


def _exponent_of(magnitude: Fraction) -> int:
    """The binary exponent of a magnitude."""
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= magnitude else exponent - 1


def first_nan_rank(source: Format) -> int:
    """The lowest rank of a NaN of a format; a rank that no value has if the format has no NaN.

    >>> from supremum.formats import as_format
    >>> first_nan_rank(as_format("float8_e5m2")) - last_rank(as_format("float8_e5m2"))
    2
    """
    return last_rank(source) + 1 + source.inf


def value_of_rank(source: Format, rank: int) -> Fraction:
    """The magnitude of a rank, exactly; ranks above that of the largest finite value continue the sequence.

    >>> from supremum.formats import as_format
    >>> value_of_rank(as_format("float16"), 1) == Fraction(1, 2**24)
    True
    """
    exponent, mantissa = rank >> source.mantissa, rank & ((1 << source.mantissa) - 1)
    if exponent == 0:  # subnormal
        return Fraction(mantissa) * Fraction(2) ** (source.min_exponent - source.mantissa)
    significand = Fraction(mantissa + (1 << source.mantissa))
    return significand * Fraction(2) ** (source.min_exponent + exponent - 1 - source.mantissa)


def exponent_of_rank(source: Format, rank: int) -> int:
    """The binary exponent of a rank other than zero: that of the largest power of two which is at most its magnitude.

    >>> from supremum.formats import as_format
    >>> [exponent_of_rank(as_format("float16"), rank) for rank in (1, 3, 1 << 10)]
    [-24, -23, -14]
    """
    return _exponent_of(value_of_rank(source, rank))


@lru_cache(maxsize=4096)
def thresholds(source: Format, target: Format) -> Thresholds:
    """The ranks at which values of a source format change in a target format, under round to nearest, ties to even.

    `float8_e8m0fnu` has neither zero nor subnormal numbers: magnitudes below its smallest number become that number.

    Args:
        source: the format of the values.
        target: the format to convert them to.

    >>> from supremum.formats import as_format
    >>> thresholds(as_format("bfloat16"), as_format("bfloat16"))
    Thresholds(kept=1, normal=128, overflow=32640)
    """
    largest, smallest = Fraction(target.max), Fraction(target.smallest_subnormal)
    # The next number after the largest, were there one more exponent or pattern.
    step = Fraction(2) ** (target.max_exponent - target.mantissa)
    # A tie goes to the even significand. That of the largest number is odd, except where the pattern above means NaN.
    # The formats without a mantissa round ties up.
    is_even = target.mantissa > 0 and (largest / step) % 2 == 0
    overflow = _first_rank(source, largest + step / 2, beyond=is_even)
    if not target.zero:
        return Thresholds(1, 1, overflow)
    # The tie between zero and the smallest number flushes to zero; the one below the smallest normal number rounds up.
    kept = _first_rank(source, smallest / 2, beyond=True)
    normal = _first_rank(source, Fraction(target.smallest_normal) - smallest / 2, beyond=False)
    return Thresholds(kept, max(kept, normal), overflow)


def _first_rank(source: Format, bound: Fraction, *, beyond: bool) -> int:
    """The lowest rank whose value is at least the bound, or `beyond` it; at most one more than the last rank."""
    rank = _rank_of(source, bound, math.floor) + 1 if beyond else _rank_of(source, bound, math.ceil)
    return min(rank, last_rank(source) + 1)


def overflow_to(target: Format) -> str:
    """What a value that overflows a format becomes: `"inf"`, `"nan"` or `"max"`, its largest finite number.

    >>> from supremum.formats import as_format
    >>> [
    ...     overflow_to(as_format(name))
    ...     for name in ("float16", "float8_e4m3fn", "float4_e2m1fn")
    ... ]
    ['inf', 'nan', 'max']
    """
    if target.inf:
        return "inf"
    return "max" if target.nan is Nan.NONE else "nan"
