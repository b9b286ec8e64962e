"""Rounding float32 values to fewer bits so that XLA cannot undo it.

XLA may drop a cast to a narrow dtype that is followed by a cast back. `lax.reduce_precision` stays, and rounds right
for formats with the exponent of float32; for others it flushes subnormals, so those are rounded on the integer bits.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from supremum.formats import as_format
from supremum.numerics.devices import Arithmetic

_FLOAT32 = as_format("float32")
_SIGN = np.uint32(1 << (_FLOAT32.bits - 1))
_INFINITY = np.uint32(((1 << _FLOAT32.exponent) - 1) << _FLOAT32.mantissa)
_HIDDEN = np.uint32(1 << _FLOAT32.mantissa)


def rounded(x: Any, exponent: int, mantissa: int) -> Any:
    """Round float32 values to nearest, ties to even, in an IEEE format; they stay float32.

    Args:
        x: the values.
        exponent: the exponent bits of the format.
        mantissa: its mantissa bits.

    >>> rounded(jnp.float32(1.001), 8, 10), rounded(jnp.float32(1e-7), 5, 10)
    (Array(1.0009766, dtype=float32), Array(1.1920929e-07, dtype=float32))
    """
    if mantissa == _FLOAT32.mantissa:
        return x
    if exponent == _FLOAT32.exponent:
        return lax.reduce_precision(x, exponent, mantissa)
    return _rounded_bits(x, exponent, mantissa)


def _rounded_bits(x: Any, exponent: int, mantissa: int) -> Any:
    bits = lax.bitcast_convert_type(x, jnp.uint32)
    sign, magnitude = bits & _SIGN, bits & ~_SIGN
    bias, narrow = (1 << (_FLOAT32.exponent - 1)) - 1, (1 << (exponent - 1)) - 1
    dropped = _FLOAT32.mantissa - mantissa
    normal = _nearest(magnitude, np.uint32(dropped)) << np.uint32(dropped)
    largest = np.uint32(((bias + narrow) << _FLOAT32.mantissa) | (((1 << mantissa) - 1) << dropped))
    normal = jnp.where(normal > largest, _INFINITY, normal)
    # Below the smallest normal number the spacing no longer shrinks, so more bits are dropped, the hidden one included.
    biased = (magnitude >> np.uint32(_FLOAT32.mantissa)).astype(jnp.int32)
    smallest = bias - narrow + 1
    more = np.int32(dropped) + jnp.clip(smallest - biased, 0, mantissa + 2)
    steps = _nearest((magnitude & (_HIDDEN - np.uint32(1))) | _HIDDEN, more.astype(jnp.uint32))
    step = np.float32(2.0 ** (smallest - bias - mantissa))
    subnormal = lax.bitcast_convert_type(steps.astype(jnp.float32) * step, jnp.uint32)
    found = jnp.where(biased < smallest, subnormal, normal)
    found = jnp.where(magnitude >= _INFINITY, magnitude, found)
    return lax.bitcast_convert_type(sign | found, jnp.float32)


def _nearest(value: Any, dropped: Any) -> Any:
    """An integer without its last bits, rounded to nearest, ties to even; at least one bit is dropped."""
    one = np.uint32(1)
    half = (one << (dropped - one)) - one
    return (value + half + ((value >> dropped) & one)) >> dropped


def truncated(x: Any, mantissa: int) -> Any:
    """Cut the last mantissa bits of float32 values off; infinity and NaN stay what they are.

    >>> truncated(jnp.float32(1.9999), 1)
    Array(1.5, dtype=float32)
    """
    kept = np.uint32((1 << _FLOAT32.bits) - (1 << (_FLOAT32.mantissa - mantissa)))
    cut = lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.uint32) & kept, jnp.float32)
    return jnp.where(jnp.isfinite(x), cut, x)


def parts_of(x: Any, arithmetic: Arithmetic) -> list[Any]:
    """The parts that an operand is split into, largest first; float32, or complex of float32.

    Each part fits into the arithmetic's format. The sum of 2 or 3 parts is nearly or exactly the operand.

    >>> from supremum.numerics.devices import BFLOAT16_X6
    >>> first, *rest = parts_of(jnp.float32(0.1), BFLOAT16_X6)
    >>> first, sum(rest, first)
    (Array(0.10009766, dtype=float32), Array(0.1, dtype=float32))
    """
    if jnp.iscomplexobj(x):
        pairs = zip(parts_of(x.real, arithmetic), parts_of(x.imag, arithmetic), strict=True)
        return [lax.complex(real, imaginary) for real, imaginary in pairs]
    exponent, mantissa = arithmetic.exponent, arithmetic.mantissa
    parts: list[Any] = []
    for place in range(arithmetic.parts):
        last = place == arithmetic.parts - 1
        cuts = arithmetic.truncates and not last
        part = truncated(x, mantissa) if cuts else rounded(x, exponent, mantissa)
        parts.append(part)
        if not last:
            # What is left of infinity or NaN would be NaN.
            x = jnp.where(jnp.isfinite(part), x - part, 0)
    return parts


_PAIRS: Mapping[int, tuple[tuple[int, int], ...]] = {
    1: ((0, 0),),
    3: ((1, 0), (0, 1), (0, 0)),
    6: ((1, 1), (0, 2), (2, 0), (0, 1), (1, 0), (0, 0)),
    9: ((2, 2), (2, 1), (1, 2), (1, 1), (0, 2), (2, 0), (0, 1), (1, 0), (0, 0)),
}
"""The parts of both operands that each number of passes multiplies, in the order in which XLA adds the products."""


def in_passes(left: Any, right: Any, arithmetic: Arithmetic, product: Callable[[Any, Any], Any]) -> Any:
    """Multiply two operands as an arithmetic does: split them into parts, and add the products of the parts.

    The sum of the small products is dropped where it is not finite, as XLA does: infinity times a part that is zero is
    NaN, but the product of the largest parts is right there.

    Args:
        left: the first operand; float32, or complex of float32.
        right: the second one.
        arithmetic: says how many parts and products there are.
        product: multiplies two parts.

    >>> from supremum.numerics.devices import BFLOAT16, BFLOAT16_X6
    >>> x, y = jnp.float32(0.1), jnp.float32(0.7)
    >>> in_passes(x, y, BFLOAT16, jnp.multiply), in_passes(x, y, BFLOAT16_X6, jnp.multiply)
    (Array(0.0699921, dtype=float32), Array(0.07, dtype=float32))
    """
    lefts, rights = parts_of(left, arithmetic), parts_of(right, arithmetic)
    *small, largest = [product(lefts[one], rights[other]) for one, other in _PAIRS[arithmetic.passes]]
    if not small:
        return largest
    correction = functools.reduce(operator.add, small)
    return jnp.where(jnp.isfinite(correction), correction, 0) + largest
