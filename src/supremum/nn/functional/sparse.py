"""Products with sparse inputs, `jax.experimental.sparse.BCOO`."""

from __future__ import annotations

import sys
from typing import Any, cast

import jax

from supremum.errors import ArgumentError
from supremum.formats import at_least_float32
from supremum.nn.functional.dtype_promotion import common_dtype, promote_dtype
from supremum.nn.functional.shape_checks import check_product


def is_sparse(x: Any) -> bool:
    """Whether inputs are a `BCOO`; imports nothing, since only a loaded `jax.experimental.sparse` can make one."""
    sparse = sys.modules.get("jax.experimental.sparse")
    return isinstance(x, getattr(sparse, "BCOO", ()))


def sparse_product(x: Any, kernel: Any, bias: Any, *, dtype: Any = None) -> jax.Array:
    """A matrix product of sparse inputs over the last axis, plus a bias, computed in at least float32 and rounded once.

    XLA accumulates products of sparse inputs in the dtype of the operands, unlike those of dense inputs.

    Args:
        x: a `BCOO` of shape (..., n) without dense axes.
        kernel: weights, shape (n, m).
        bias: shape (m,), or None.
        dtype: the dtype of the result; None for the result type of the arrays.

    Returns:
        A dense array of shape (..., m).

    Raises:
        ArgumentError: if an axis of `x` is dense, or for shapes that do not match; a `ValueError`.
    """
    from jax.experimental import sparse  # takes half a second to load

    if x.n_dense:
        raise ArgumentError(f"sparse inputs must not have dense axes, got {x.n_dense}; use x.todense()")
    target = common_dtype(x.data, kernel, bias, dtype=dtype)
    wide = at_least_float32(target)
    data, kernel, bias = promote_dtype(x.data, kernel, bias, dtype=wide)
    check_product(x.shape, kernel.shape, bias)
    entries = sparse.BCOO(
        (data, x.indices), shape=x.shape, indices_sorted=x.indices_sorted, unique_indices=x.unique_indices
    )
    contracted = (((x.ndim - 1,), (0,)), ((), ()))
    product = cast("jax.Array", sparse.bcoo_dot_general(entries, kernel, dimension_numbers=contracted))
    return (product if bias is None else product + bias).astype(target)
