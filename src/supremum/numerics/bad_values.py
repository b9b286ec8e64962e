"""NaNs and infinities in values: where they are, which of them an operation made, and the ranges of the others.

The tests look at the integer bits, as the counts of `profile` do, so they hold for every format.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import JaxprEqn

from supremum.formats import DType, Format, Nan, as_format
from supremum.numerics.thresholds import bits_and_ranks, first_nan_rank, last_rank
from supremum.numerics.widening import EXACT, floating_avals, is_floating

_CHOOSES = EXACT - {"abs", "gather", "reduce_window_max", "reduce_window_min"}
"""Primitives that make no bad value of good ones.

The others are exact, too, but a complex magnitude may overflow, an index be out of bounds, and a window be empty.
"""
# `jax.extend` does not export all of these primitives, and some exist only in some versions of JAX.
_ELEMENTWISE = frozenset({
    "abs", "acos", "acosh", "add", "add_any", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e", "bessel_i1e",
    "cbrt", "ceil", "complex", "conj", "convert_element_type", "cos", "cosh", "digamma", "div", "erf", "erf_inv",
    "erfc", "exp", "exp2", "expm1", "floor", "igamma", "igamma_grad_a", "igammac", "integer_pow", "lgamma", "log",
    "log1p", "log2", "logistic", "mul", "nextafter", "one_minus_square", "polygamma", "pow", "reduce_precision",
    "regularized_incomplete_beta", "rem", "round", "rsqrt", "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh",
    "zeta",
})  # fmt: skip
"""Primitives whose results depend only on the same elements of their operands."""
_OVER_AXES = frozenset({"reduce_prod", "reduce_sum"})
"""Primitives whose results depend only on the elements along some axes."""


BAD, NAN = np.uint32(1), np.uint32(2)
"""The bits of a code: whether a value is NaN or infinite, and whether it is NaN."""
_GOOD = np.uint32(0)


def can_be_bad(source: Format) -> bool:
    """Whether a format has NaNs or infinities.

    >>> can_be_bad(as_format("float4_e2m1fn")), can_be_bad(as_format("float8_e4m3fn"))
    (False, True)
    """
    return source.component.inf or source.component.nan is not Nan.NONE


def makes_bad(equation: JaxprEqn) -> bool:
    """Whether an equation can make a NaN or an infinity of good values."""
    is_possible = any(can_be_bad(as_format(aval.dtype)) for aval in floating_avals(equation.outvars))
    return is_possible and equation.primitive.name not in _CHOOSES


def _parts(value: Any) -> list[Any]:
    return [lax.real(value), lax.imag(value)] if as_format(value.dtype).category == "complex" else [value]


def codes(value: jax.Array) -> jax.Array:
    """The code of each element of a floating array, as uint32: 0, `BAD`, or `BAD | NAN`."""
    if not can_be_bad(as_format(value.dtype)):
        return jnp.zeros(np.shape(value), "uint32")
    return reduce(lax.bitwise_or, map(_codes_of_part, _parts(value)))


def _codes_of_part(value: Any) -> Any:
    source, (_, ranks) = as_format(value.dtype), bits_and_ranks(value)
    is_nan, is_bad = (ranks >= ranks.dtype.type(rank) for rank in (first_nan_rank(source), last_rank(source) + 1))
    return jnp.where(is_nan, BAD | NAN, jnp.where(is_bad, BAD, _GOOD))


def replace_bad(value: jax.Array, where: jax.Array | None = None) -> jax.Array:
    """An array with 1 in the place of bad elements, and -1 in the place of minus infinity.

    Ones keep what follows in range: their logarithms, roots and inverses exist, and sums of them overflow late.

    Args:
        value: the floating array.
        where: the elements to replace; the bad ones by default.
    """
    source = as_format(value.dtype)
    if not can_be_bad(source):
        return value
    one = jnp.ones(np.shape(value), value.dtype)
    if source.component is source and source.signed and source.inf:
        one = lax.select(value < jnp.zeros((), value.dtype), -one, one)  # only minus infinity is a bad value below zero
    return lax.select(codes(value) != _GOOD if where is None else where, one, value)


def new_bad_values(equation: JaxprEqn, operands: Sequence[Any], result: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Which elements of a result are bad though the operands are good.

    Where an element depends only on some elements of the operands, only these count. Otherwise all elements of the
    operands do.

    Args:
        equation: the operation.
        operands: its operands.
        result: a floating result.

    Returns:
        The codes of the NaNs made of operands without NaN and of the infinities made of finite operands, 0 for other
        elements; and whether each element is bad though the operands are finite.
    """
    had = jnp.zeros(np.shape(result), "uint32")
    for operand in operands:
        if is_floating(operand):
            had |= _codes_of_operand(equation, codes(operand), np.shape(result))
    result_codes = codes(result)
    is_new = jnp.where(result_codes & NAN != _GOOD, had & NAN == _GOOD, had == _GOOD)
    return jnp.where(is_new, result_codes, _GOOD), (result_codes != _GOOD) & (had == _GOOD)


def _codes_of_operand(equation: JaxprEqn, codes: Any, shape: tuple[int, ...]) -> Any:
    """The codes of the elements of an operand that an element of the result depends on, joined."""
    name = equation.primitive.name
    if name in _ELEMENTWISE and codes.shape in ((), shape):
        return jnp.broadcast_to(codes, shape)
    axes = equation.params["axes"] if name in _OVER_AXES else tuple(range(codes.ndim))
    return jnp.broadcast_to(join_codes(codes, tuple(axes)), shape)


def join_codes(codes: jax.Array, axes: tuple[int, ...] | None = None) -> jax.Array:
    """The codes along some axes, or all, joined."""
    return lax.reduce_or(codes, tuple(range(codes.ndim)) if axes is None else axes)


def count(mask: jax.Array) -> jax.Array:
    """The number of true elements, as uint32."""
    return lax.reduce_sum(lax.convert_element_type(mask, "uint32"), tuple(range(mask.ndim)))


RANGE = 6
"""The number of integers in the range of an array; see `range_of`."""


def range_of(value: jax.Array, integers: DType) -> jax.Array:
    """The range of a floating array, as integers, so that no digit is lost.

    The parts of complex numbers count as values.

    Args:
        value: the array.
        integers: int32, or int64 for float64 and complex128.

    Returns:
        The least and the largest finite value, as ranks with a sign, the first above the second if there are none; the
        least rank of a finite value other than zero, the largest integer if there is none; and the numbers of zeros,
        NaNs and infinities, of which int32 has the bits.
    """
    row = as_format(value.dtype)
    # float32 holds all values of the formats of less than 8 bits.
    whole = value if row.component.bits >= 8 else lax.convert_element_type(value, "float32")
    parts = [_range_of_part(part, integers) for part in _parts(whole)]
    if len(parts) == 1:
        return parts[0]
    a, b = parts
    return jnp.concatenate([lax.min(a[:1], b[:1]), lax.max(a[1:2], b[1:2]), lax.min(a[2:3], b[2:3]), a[3:] + b[3:]])


def _range_of_part(value: Any, integers: DType) -> Any:
    source, (bits, ranks) = as_format(value.dtype), bits_and_ranks(value)
    axes, limits = tuple(range(value.ndim)), np.iinfo(integers)
    last, zero = integers.type(limits.max), integers.type(0)
    value_codes = codes(value)
    is_finite = value_codes == _GOOD
    size = lax.convert_element_type(ranks, integers)
    keys = size
    if source.signed:
        sign = bits & bits.dtype.type(1 << (source.exponent + source.mantissa))
        keys = jnp.where(sign != bits.dtype.type(0), -size, size)
    least = lax.reduce_min(jnp.where(is_finite, keys, last), axes)
    most = lax.reduce_max(jnp.where(is_finite, keys, integers.type(limits.min)), axes)
    smallest = lax.reduce_min(jnp.where(is_finite & (size != zero), size, last), axes)
    counts = (
        lax.convert_element_type(count(mask), integers)
        for mask in (size == zero, value_codes == BAD | NAN, value_codes == BAD)
    )
    return jnp.stack([least, most, smallest, *counts])
