"""Products of inputs and weights, in the dtype that they meet in.

Products are left to XLA in the dtype of their operands: it accumulates float16 and bfloat16 in float32 and rounds once
(a test measures it). Asking for it with `preferred_element_type` would turn the products of the backward pass, whose
cotangents are then float32, into float32 ones.
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
        x: inputs, shape (..., n); a `jax.experimental.sparse.BCOO` as well.
        kernel: weights, shape (n, m).
        bias: shape (m,), or None.
        dtype: the dtype to compute in; None for the one that the arrays meet in.

    Returns:
        An array of shape (..., m) in that dtype.

    Raises:
        ArgumentError: for shapes that do not fit together; a `ValueError`.

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
    """A matrix product over any axes, plus a bias, with a matrix of its own for each index of the batch axes.

    Args:
        x: inputs.
        kernel: weights, shape (*batch, *contracted, *features), the first two as in `x`.
        bias: shape (*batch, *features), or None.
        axes: the axes of `x` that are contracted, in the kernel's order.
        batch_axes: the axes of `x` that have matrices of their own, from the first on.
        dtype: the dtype to compute in; None for the one that the arrays meet in.

    Returns:
        An array in that dtype, of shape (*batch, *others, *features), which are the axes of `x` that are not
        contracted, and then the kernel's own.

    Raises:
        ArgumentError: for shapes and axes that do not fit together; a `ValueError`.

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
            f"inputs of shape {x.shape} with axes={axes} and batch_axes={batch_axes} take a kernel of shape "
            f"{(*shared, '...')}, not {kernel.shape}".replace("'", "")
        )
    product = lax.dot_general(x, kernel, ((axes, contracted), (batch_axes, batch_axes)))
    if bias is None:
        return product
    features = kernel.shape[len(shared) :]
    check_shape("bias", bias.shape, (*kernel.shape[:batch], *features))
    others = (1,) * (product.ndim - batch - len(features))
    return product + bias.reshape(*kernel.shape[:batch], *others, *features)


def general_axes(axes: Any, batch_axes: Any, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The contracted axes and the batch axes of `dense_general`, as numbers from 0.

    Args:
        axes: the axes that are contracted.
        batch_axes: the axes that have matrices of their own.
        ndim: how many axes the inputs have.

    Raises:
        ArgumentError: for axes the inputs do not have, that are both, or batch axes that are not the first ones; a
            `ValueError`.
    """
    axes = as_axes("axes", axes, ndim)
    batch_axes = as_axes("batch_axes", batch_axes, ndim)
    if batch_axes != tuple(range(len(batch_axes))):
        raise ArgumentError(
            f"batch_axes are the first axes in their order, not {batch_axes}: give "
            f"batch_axes={tuple(range(len(batch_axes)))}, and move them there with jnp.moveaxis(x, {batch_axes}, "
            f"{tuple(range(len(batch_axes)))})"
        )
    both = sorted(set(axes) & set(batch_axes))
    if both:
        raise ArgumentError(f"axis {both[0]} is among axes={axes} and among batch_axes={batch_axes}: give it to one")
    return axes, batch_axes


def einsum(equation: str, x: Any, kernel: Any, bias: Any = None, *, dtype: Any = None) -> jax.Array:
    """A sum of products after an equation, plus a bias.

    Args:
        equation: `"inputs,kernel->outputs"`, a letter for each axis; `...` in inputs and outputs stands for all axes
            that are left.
        x: inputs.
        kernel: weights.
        bias: of the kernel's axes that are the result's too, in the result's order; or None.
        dtype: the dtype to compute in; None for the one that the arrays meet in.

    Returns:
        An array in that dtype. Sums over an axis of one operand alone, which XLA would round on their own, are computed
        in at least float32.

    Raises:
        ArgumentError: for an invalid equation, and for shapes that do not fit it; a `ValueError`.

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
