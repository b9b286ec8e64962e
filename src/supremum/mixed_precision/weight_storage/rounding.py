"""Rounding of float32 to narrower formats on integer bits, to nearest or stochastically.

XLA may drop a cast to a narrow format and back (`xla_allow_excess_precision`), but not operations on integers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from supremum.formats import DType, Format, Kind, Nan, as_format

_WIDE = as_format("float32")
_WIDE_BIAS = 1 - _WIDE.min_exponent
_MAGNITUDE = np.uint32(2 ** (_WIDE.bits - 1) - 1)
_INFINITY = np.uint32(np.float32(np.inf).view(np.uint32))


class _Layout(NamedTuple):
    """Where the bits of a narrow format are, and which magnitudes of float32 are special in it.

    Args:
        word: the unsigned dtype of its bits.
        dropped: the bits of float32's mantissa that it does not have.
        lowest: float32's exponent code of its smallest normal number.
        largest: the float32 bits of its largest number.
        largest_code: its own bits.
        overflow: the smallest float32 bits that round to infinity.
        past_largest: the bits of infinity, or of NaN in a format without infinity.
        nan: the bits of NaN.
        sign: the place of the bit of the sign.
        has_negative_zero: whether a zero may have the sign.
    """

    word: DType
    dropped: int
    lowest: int
    largest: np.uint32
    largest_code: np.uint32
    overflow: np.uint32
    past_largest: np.uint32
    nan: np.uint32
    sign: int
    has_negative_zero: bool


def is_roundable(row: Format) -> bool:
    """Whether `round_to_format` takes a format: narrower than float32, of whole bytes, with zero, a sign and NaN."""
    is_number = row.kind is Kind.FLOAT and row.zero and row.signed and row.nan is not Nan.NONE
    return is_number and row.bits % 8 == 0 and row.bits < _WIDE.bits


@lru_cache(maxsize=64)
def _layout(row: Format) -> _Layout:
    word = as_format(f"uint{row.bits}").dtype
    code = int(row.dtype.type(row.max).view(word))
    # Halfway to the number that would follow; a tie goes to the even mantissa.
    halfway = np.float32(row.max + row.eps * 2.0**row.max_exponent / 2).view(np.uint32)
    nan = int(row.dtype.type(np.nan).view(word))
    return _Layout(
        word=word,
        dropped=_WIDE.mantissa - row.mantissa,
        lowest=row.min_exponent + _WIDE_BIAS,
        largest=np.float32(row.max).view(np.uint32),
        largest_code=np.uint32(code),
        overflow=np.uint32(halfway + (code % 2 == 0)),
        past_largest=np.uint32(int(row.dtype.type(np.inf).view(word)) if row.inf else nan),
        nan=np.uint32(nan),
        sign=row.bits - 1,
        has_negative_zero=row.nan is not Nan.NEGATIVE_ZERO,
    )


def round_to_format(values: jax.Array, row: Format, noise: jax.Array | None = None) -> jax.Array:
    """Round float32 to a narrower format, stochastically or to nearest with ties to even.

    Stochastic rounding chooses one of the two neighbors, the upper one with the probability that makes the mean equal
    to the value. A value that the format holds, an infinity or NaN stays as it is. Values past the largest number
    are rounded to nearest, as in `astype`. Probabilities are multiples of 2**-32.

    Args:
        values: float32, any shape.
        row: a format for which `is_roundable`.
        noise: uniform uint32 words of the same shape, of which large ones round up in magnitude; None to round to
            nearest.

    >>> tenth = jnp.float32([0.1, 0.1])
    >>> round_to_format(tenth, as_format("bfloat16"), jnp.uint32([0, 2**32 - 1]))
    Array([0.0996094, 0.100098], dtype=bfloat16)
    >>> round_to_format(tenth, as_format("float8_e4m3fn"))
    Array([0.101562, 0.101562], dtype=float8_e4m3fn)
    """
    layout = _layout(row)
    bits = jax.lax.bitcast_convert_type(values, jnp.uint32)
    magnitude = bits & _MAGNITUDE
    inner = _same_exponents if layout.lowest == 1 else _other_exponents
    code = inner(layout, magnitude, noise)
    if noise is not None or inner is _other_exponents:  # else the carry makes an infinity of numbers past the largest
        code = jnp.where(magnitude > layout.largest, layout.largest_code, code)
        code = jnp.where(magnitude >= layout.overflow, layout.past_largest, code)
    signed = code | ((bits >> (_WIDE.bits - 1)) << layout.sign)
    if not layout.has_negative_zero:
        signed = jnp.where(code == 0, np.uint32(0), signed)
    signed = jnp.where(magnitude > _INFINITY, layout.nan, signed)
    return jax.lax.bitcast_convert_type(signed.astype(layout.word), row.dtype)


def to_float32(values: jax.Array) -> jax.Array:
    """Convert numbers of a narrow format to float32, exactly.

    Args:
        values: an array of a format for which `is_roundable`.

    >>> to_float32(jnp.asarray([1.5, -jnp.inf], "bfloat16"))
    Array([ 1.5, -inf], dtype=float32)
    """
    layout = _layout(as_format(values.dtype))
    if layout.lowest != 1:
        return values.astype(jnp.float32)
    # On CPUs XLA takes longer for the cast.
    code = jax.lax.bitcast_convert_type(values, layout.word).astype(jnp.uint32)
    return jax.lax.bitcast_convert_type(code << layout.dropped, jnp.float32)


def has_bits_of_float32(row: Format) -> bool:
    """Whether the bits of a format are the upper 16 bits of float32."""
    return row.bits == _WIDE.bits // 2 and row.exponent == _WIDE.exponent


def split(values: jax.Array, row: Format) -> tuple[jax.Array, jax.Array]:
    """Split float32 values into numbers of 16 bits and the rest.

    Args:
        values: float32.
        row: a format for which `has_bits_of_float32`.

    Returns:
        The values rounded to nearest, with halves away from zero, and what was taken from them, int16 in units of
        float32's last place. `with_rest` of both is the values again, to the last bit.

    >>> value = jnp.float32([0.1, -0.1])
    >>> narrow, rest = split(value, as_format("bfloat16"))
    >>> rest, with_rest(narrow, rest) == value
    (Array([-13107, -13107], dtype=int16), Array([ True,  True], dtype=bool))
    """
    layout = _layout(row)
    bits = jax.lax.bitcast_convert_type(values, jnp.uint32)
    magnitude = bits & _MAGNITUDE
    is_nan = magnitude > _INFINITY
    # With halves away from zero, the rest is the lower bits, as a signed number. A half that is rounded down would have
    # a rest of 2**15, which int16 does not hold. A carry makes an infinity of numbers past the largest.
    half = np.uint32(2 ** (layout.dropped - 1))
    code = jnp.where(is_nan, layout.nan, (magnitude + half) >> layout.dropped)
    code |= (bits >> (_WIDE.bits - 1)) << layout.sign
    rest = jnp.where(is_nan, np.uint32(0), magnitude).astype(layout.word)
    return (
        jax.lax.bitcast_convert_type(code.astype(layout.word), row.dtype),
        jax.lax.bitcast_convert_type(rest, as_format(f"int{row.bits}").dtype),
    )


def with_rest(narrow: jax.Array, rest: jax.Array) -> jax.Array:
    """Join what `split` returned; if the narrow numbers have changed since, an infinity stays, and so do signs."""
    bits = jax.lax.bitcast_convert_type(to_float32(narrow), jnp.uint32)
    part = (bits & _MAGNITUDE).astype(jnp.int32)
    whole = jnp.clip(part + rest.astype(jnp.int32), 0, np.int32(_INFINITY))
    whole = jnp.where(part > np.int32(_INFINITY), part, whole).astype(jnp.uint32)
    return jax.lax.bitcast_convert_type(whole | (bits & ~_MAGNITUDE), jnp.float32)


def _same_exponents(layout: _Layout, magnitude: jax.Array, noise: jax.Array | None) -> jax.Array:
    """Round by an addition that carries into the upper bits; the exponents of both formats are the same."""
    dropped = layout.dropped
    if noise is None:
        added = np.uint32(2 ** (dropped - 1) - 1) + ((magnitude >> dropped) & np.uint32(1))
    else:
        added = noise >> (32 - dropped)
    return (magnitude + added) >> dropped


def _other_exponents(layout: _Layout, magnitude: jax.Array, noise: jax.Array | None) -> jax.Array:
    """Round the mantissa as an integer in units of the last place of the narrow format, subnormals included."""
    hidden = np.uint32(2**_WIDE.mantissa)
    exponent = magnitude >> _WIDE.mantissa
    mantissa = (magnitude & (hidden - np.uint32(1))) | jnp.where(exponent > 0, hidden, np.uint32(0))
    exponent = jnp.maximum(exponent, 1)
    lowest = np.uint32(layout.lowest)
    dropped = np.uint32(layout.dropped) + jnp.where(exponent < lowest, lowest - exponent, np.uint32(0))
    shift = jnp.minimum(dropped, 31)
    whole = mantissa >> shift
    rest = mantissa - (whole << shift)
    # The part of a unit in the last place that is lost, as a fraction of 2**32.
    fraction = jnp.where(dropped <= 32, rest << (32 - jnp.minimum(dropped, 32)), rest >> jnp.clip(dropped, 32, 63) - 32)
    if noise is None:
        half = np.uint32(2**31)
        up = (fraction > half) | ((fraction == half) & (whole & np.uint32(1) == 1))
    else:
        up = ~noise < fraction
    # A carry out of the mantissa adds one to the exponent.
    return (
        ((jnp.maximum(exponent, lowest) - lowest) << (_WIDE.mantissa - layout.dropped)) + whole + up.astype(jnp.uint32)
    )
