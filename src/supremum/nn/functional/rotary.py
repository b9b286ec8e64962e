"""Rotary position embedding."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import real_number
from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format, at_least_float32
from supremum.nn.functional.dtype_promotion import as_array, promote_dtype
from supremum.nn.functional.real_only import refuse_complex
from supremum.nn.functional.shape_checks import broadcasts


def rotary_embedding(x: Any, positions: Any, *, base: float = 10000.0, dtype: Any = None) -> jax.Array:
    """Rotate queries or keys by angles that grow with their position; products then depend on distances only.

    Su et al. 2021, "RoFormer" (arXiv:2104.09864), section 3.2.2: pair i of a head of dimension d is rotated by
    `position * base ** (-2 * i / d)`. Element i is paired with element i + d / 2, as in GPT-NeoX and Llama. RoFormer
    pairs neighbors, which differs only in the order of elements. Angles and products are computed in at least float32,
    since bfloat16 cannot distinguish position 256 from 257, and rounded once.

    Args:
        x: real numbers of shape (batch..., length, heads, head_dim), with an even head_dim.
        positions: integers or real numbers that broadcast to (batch..., length).
        base: about the number of positions in which the slowest pair turns by 1 radian; 10,000 in the paper.
        dtype: the dtype of the result; None for the dtype of `x`.

    Returns:
        An array of the shape of `x`.

    Raises:
        OperandError: for complex or boolean arguments; a `TypeError`.
        ArgumentError: for shapes that do not match, or a base that is not positive; a `ValueError`.

    >>> turned = rotary_embedding(jnp.ones((3, 1, 2)), jnp.arange(3))
    >>> [round(float((turned[i] * turned[i + 1]).sum()), 3) for i in range(2)]
    [1.081, 1.081]
    """
    refuse_complex("rotary_embedding", dtype=dtype, x=x, positions=positions)
    (x,), positions = promote_dtype(x, dtype=dtype), as_array("positions", positions)
    if x.ndim < 3 or x.shape[-1] % 2:
        raise ArgumentError(
            f"x must have shape (batch..., length, heads, head_dim) with an even head_dim, got {x.shape}"
        )
    if as_format(positions.dtype).category == "bool":
        raise OperandError("positions must be numbers, got bool; use jnp.arange(length)")
    if not broadcasts(positions.shape, x.shape[:-2]):
        raise ArgumentError(
            f"positions must broadcast to (batch..., length), here {x.shape[:-2]}, got {positions.shape}"
        )
    if not real_number("base", base) > 0:
        raise ArgumentError(f"base must be positive, got {base}")
    wide = at_least_float32(x.dtype)
    half = x.shape[-1] // 2
    rates = jnp.asarray(base ** (-np.arange(half) / max(half, 1)), wide)
    angles = positions.astype(wide)[..., None, None] * rates
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    first, second = jnp.split(x.astype(wide), 2, axis=-1)
    turned = first * cos - second * sin, second * cos + first * sin
    return jnp.concatenate(turned, -1).astype(x.dtype)
