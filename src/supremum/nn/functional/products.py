"""What layers compute, as functions of arrays.

Products are left to XLA in the dtype of their operands: it accumulates float16 and bfloat16 in float32 and rounds once
(a test measures it). Asking for it with `preferred_element_type` would turn the products of the backward pass, whose
cotangents are then float32, into float32 ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax


def dense(x: jax.Array, kernel: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    """A matrix product over the last axis, plus a bias.

    Args:
        x: inputs, shape (..., n).
        kernel: weights, shape (n, m), of the same dtype.
        bias: shape (m,), of the same dtype, or None.

    Returns:
        An array of shape (..., m) and the same dtype.
    """
    product = lax.dot_general(x, kernel, (((x.ndim - 1,), (0,)), ((), ())))
    return product if bias is None else product + bias


def conv(
    x: jax.Array, kernel: jax.Array, bias: jax.Array | None = None, *, strides: Sequence[int], padding: str
) -> jax.Array:
    """A convolution in any number of dimensions, channels last.

    Args:
        x: inputs, shape (batch, *space, channels).
        kernel: weights, shape (*window, channels, filters), of the same dtype.
        bias: shape (filters,), of the same dtype, or None.
        strides: one step per dimension of space.
        padding: `"SAME"` or `"VALID"`.

    Returns:
        An array of shape (batch, *space, filters) and the same dtype.
    """
    space = tuple(range(1, x.ndim - 1))
    last = x.ndim - 1
    layout = lax.ConvDimensionNumbers(
        lhs_spec=(0, last, *space),
        rhs_spec=(last, last - 1, *(axis - 1 for axis in space)),
        out_spec=(0, last, *space),
    )
    product = lax.conv_general_dilated(x, kernel, tuple(strides), padding, dimension_numbers=layout)
    return product if bias is None else product + bias


def max_pool(x: jax.Array, window: Sequence[int], strides: Sequence[int], padding: str) -> jax.Array:
    """The largest value of each window, channels last.

    Args:
        x: inputs, shape (batch, *space, channels), of a real floating dtype.
        window: size of the window, one number per dimension of space.
        strides: one step per dimension of space.
        padding: `"SAME"` or `"VALID"`.
    """
    # A Python number: of an array JAX would not see that this is a maximum, and could not differentiate it.
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, *window, 1), (1, *strides, 1), padding)
