"""Products of inputs and weights, in their result type.

XLA gets the products in the dtype of their operands. It accumulates float16 and bfloat16 in float32 and rounds once,
which a test measures. With `preferred_element_type` the cotangents would be float32, and the products of the backward
pass would then be float32 too.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from supremum.errors import ArgumentError
from supremum.formats import at_least_float32
from supremum.nn.functional.dtype_promotion import promote_dtype, refuse_none
from supremum.nn.functional.einsum_equations import Equation
from supremum.nn.functional.shape_checks import Ints, as_axes, check_product, check_shape
from supremum.nn.functional.sparse import is_sparse, sparse_product


def dense(x: Any, kernel: Any, bias: Any = None, *, dtype: Any = None) -> jax.Array:
    """A matrix product over the last axis, plus a bias.

    Args:
        x: inputs, shape (..., n); may be a `jax.experimental.sparse.BCOO`.
        kernel: weights, shape (n, m).
        bias: shape (m,), or None.
        dtype: the dtype to compute in; None for the result type of the arrays.

    Returns:
        An array of shape (..., m) in that dtype.

    Raises:
        ArgumentError: for shapes that do not match; a `ValueError`.

    >>> dense(jnp.ones((2, 3), "int8"), jnp.ones((3, 1), "bfloat16"), jnp.ones(1, "bfloat16")).ravel()
    Array([4, 4], dtype=bfloat16)
    """
    if is_sparse(x):
        return sparse_product(x, kernel, bias, dtype=dtype)
    refuse_none(x=x, kernel=kernel)
    x, kernel, bias = promote_dtype(x, kernel, bias, dtype=dtype)
    check_product(x.shape, kernel.shape, bias)
    product = lax.dot_general(x, kernel, (((x.ndim - 1,), (0,)), ((), ())))
    return product if bias is None else product + bias


def dense_general(
    x: Any, kernel: Any, bias: Any = None, *, axes: Ints = (-1,), batch_axes: Ints = (), dtype: Any = None
) -> jax.Array:
    """A matrix product over any axes, plus a bias, with a separate matrix for each index of the batch axes.

    Args:
        x: inputs.
        kernel: weights, shape (*batch, *contracted, *features), the first two as in `x`.
        bias: shape (*batch, *features), or None.
        axes: the axes of `x` to contract, in the kernel's order.
        batch_axes: the axes of `x` with separate matrices; they must be the first axes.
        dtype: the dtype to compute in; None for the result type of the arrays.

    Returns:
        An array in that dtype. Its axes are those of `x` that are not contracted, and then the features of the kernel;
        its shape is (*batch, *others, *features).

    Raises:
        ArgumentError: for shapes and axes that do not match; a `ValueError`.

    >>> dense_general(jnp.ones((5, 2, 3)), jnp.ones((2, 3, 4)), axes=(1, 2)).shape
    (5, 4)
    >>> dense_general(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4)), batch_axes=0).shape
    (5, 2, 4)
    """
    refuse_none(x=x, kernel=kernel)
    x, kernel, bias = promote_dtype(x, kernel, bias, dtype=dtype)
    axes, batch_axes = general_axes(axes, batch_axes, x.ndim)
    batch = len(batch_axes)
    contracted = tuple(range(batch, batch + len(axes)))
    shared = tuple(x.shape[axis] for axis in (*batch_axes, *axes))
    if kernel.shape[: len(shared)] != shared:
        raise ArgumentError(
            f"the kernel must have shape {(*shared, '...')} for inputs of shape {x.shape} with axes={axes} and "
            f"batch_axes={batch_axes}, got {kernel.shape}".replace("'", "")
        )
    product = lax.dot_general(x, kernel, ((axes, contracted), (batch_axes, batch_axes)))
    if bias is None:
        return product
    features = kernel.shape[len(shared) :]
    check_shape("bias", bias.shape, (*kernel.shape[:batch], *features))
    others = (1,) * (product.ndim - batch - len(features))
    return product + bias.reshape(*kernel.shape[:batch], *others, *features)


def general_axes(axes: Any, batch_axes: Any, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Convert the contracted axes and batch axes of `dense_general` to numbers from 0.

    Args:
        axes: the axes to contract.
        batch_axes: the axes with separate matrices.
        ndim: the number of axes of the inputs.

    Raises:
        ArgumentError: for axes out of range, axes in both arguments, or batch axes that are not the first axes; a
            `ValueError`.
    """
    axes = as_axes("axes", axes, ndim)
    batch_axes = as_axes("batch_axes", batch_axes, ndim)
    first = tuple(range(len(batch_axes)))
    if batch_axes != first:
        raise ArgumentError(
            f"batch_axes must be the first axes in order, got {batch_axes}; use batch_axes={first} and "
            f"jnp.moveaxis(x, {batch_axes}, {first})"
        )
    both = sorted(set(axes) & set(batch_axes))
    if both:
        raise ArgumentError(
            f"axes and batch_axes must not overlap, got axis {both[0]} in axes={axes} and batch_axes={batch_axes}"
        )
    return axes, batch_axes


def einsum(equation: str, x: Any, kernel: Any, bias: Any = None, *, dtype: Any = None) -> jax.Array:
    """A sum of products that an equation describes, plus a bias.

    Args:
        equation: `"inputs,kernel->outputs"`, with a letter for each axis; `...` in inputs and outputs means all other
            axes.
        x: inputs.
        kernel: weights.
        bias: an array over the axes that kernel and result share, in the order of the result; or None.
        dtype: the dtype to compute in; None for the result type of the arrays.

    Returns:
        An array in that dtype. Sums over an axis that only one operand has, which XLA would round separately, are
        computed in at least float32.

    Raises:
        ArgumentError: for an invalid equation, or shapes that do not match it; a `ValueError`.

    >>> einsum("...i,iho->...ho", jnp.ones((5, 2)), jnp.ones((2, 3, 4)), jnp.ones((3, 4))).shape
    (5, 3, 4)
    """
    terms = Equation.parse(equation)
    refuse_none(x=x, kernel=kernel)
    x, kernel, bias = promote_dtype(x, kernel, bias, dtype=dtype)
    terms.check(x.shape, kernel.shape)
    if bias is not None:
        check_shape("bias", bias.shape, terms.bias_shape(kernel.shape))
    target = kernel.dtype
    if terms.sums_one_operand():
        x, kernel = (array.astype(at_least_float32(target)) for array in (x, kernel))
    product = jnp.einsum(str(terms), x, kernel).astype(target)
    return product if bias is None else product + bias.reshape(terms.over_outputs(kernel.shape, product.ndim))
