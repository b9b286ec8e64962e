"""Rounding float32 values to fewer bits so that XLA cannot undo it.

XLA may drop a cast to a narrow dtype that is followed by a cast back. `lax.reduce_precision` stays, and rounds right
for formats with the exponent of float32; for others it flushes subnormals, so those are rounded on the integer bits.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from supremum.formats import FORMATS, Kind, as_format
from supremum.mixed_precision import round_to_format, to_float32
from supremum.numerics.devices import Arithmetic

_FLOAT32 = as_format("float32")


def round_to(x: jax.Array, exponent: int, mantissa: int) -> jax.Array:
    """Round float32 values to nearest, ties to even, in an IEEE format; they stay float32.

    Args:
        x: the values.
        exponent: the exponent bits of the format: those of float32, or those of a format of at least 16 bits.
        mantissa: its mantissa bits.

    >>> round_to(jnp.float32(1.001), 8, 10), round_to(jnp.float32(1e-7), 5, 10)
    (Array(1.0009766, dtype=float32), Array(1.1920929e-07, dtype=float32))
    """
    if mantissa == _FLOAT32.mantissa:
        return x
    if exponent == _FLOAT32.exponent:
        return lax.reduce_precision(x, exponent, mantissa)
    layout = exponent, mantissa
    row = next(row for row in FORMATS if row.kind is Kind.FLOAT and (row.exponent, row.mantissa) == layout)
    return to_float32(round_to_format(x, row))


def truncate(x: jax.Array, mantissa: int) -> jax.Array:
    """Cut the last mantissa bits of float32 values off; infinity and NaN stay what they are.

    >>> truncate(jnp.float32(1.9999), 1)
    Array(1.5, dtype=float32)
    """
    kept = np.uint32((1 << _FLOAT32.bits) - (1 << (_FLOAT32.mantissa - mantissa)))
    cut = lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.uint32) & kept, jnp.float32)
    return jnp.where(jnp.isfinite(x), cut, x)


def parts_of(x: jax.Array, arithmetic: Arithmetic) -> list[jax.Array]:
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
    parts: list[jax.Array] = []
    for _ in range(max(map(max, _PAIRS[arithmetic.passes]))):
        part = truncate(x, mantissa) if arithmetic.truncates else round_to(x, exponent, mantissa)
        parts.append(part)
        # What is left of infinity or NaN would be NaN.
        x = jnp.where(jnp.isfinite(part), x - part, 0)
    return [*parts, round_to(x, exponent, mantissa)]


_PAIRS: Mapping[int, tuple[tuple[int, int], ...]] = {
    1: ((0, 0),),
    3: ((1, 0), (0, 1), (0, 0)),
    6: ((1, 1), (0, 2), (2, 0), (0, 1), (1, 0), (0, 0)),
    9: ((2, 2), (2, 1), (1, 2), (1, 1), (0, 2), (2, 0), (0, 1), (1, 0), (0, 0)),
}
"""The parts of both operands that each number of passes multiplies, in the order in which XLA adds the products."""


def in_passes(
    left: jax.Array, right: jax.Array, arithmetic: Arithmetic, product: Callable[[jax.Array, jax.Array], jax.Array]
) -> jax.Array:
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
    >>> (
    ...     in_passes(x, y, BFLOAT16, jnp.multiply),
    ...     in_passes(x, y, BFLOAT16_X6, jnp.multiply),
    ... )
    (Array(0.06999016, dtype=float32), Array(0.07, dtype=float32))
    """
    lefts, rights = parts_of(left, arithmetic), parts_of(right, arithmetic)
    *small, largest = [product(lefts[one], rights[other]) for one, other in _PAIRS[arithmetic.passes]]
    if not small:
        return largest
    correction = functools.reduce(operator.add, small)
    return jnp.where(jnp.isfinite(correction), correction, 0) + largest
