"""Embeddings, the rows of a table."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from supremum.argument_checks import whole_number
from supremum.errors import ArgumentError, OperandError
from supremum.formats import Format, as_format, at_least_float32
from supremum.nn.functional.dtype_promotion import common_dtype, promote_arrays, refuse_none
from supremum.nn.functional.precision import as_precision
from supremum.promotion import result_type
from supremum.rules import get_rules
from supremum.typing import ArrayLike, DTypeLike


def embedding(indices: ArrayLike, table: ArrayLike, *, dtype: DTypeLike | None = None) -> jax.Array:
    """Look up rows of a table.

    An index out of range, below 0 too, raises if its value is known. In a traced function it gives a row of NaN, as
    `mode="fill"` of `jax.numpy.ndarray.at` does; for a table of signed integers the row has the smallest number, and
    for unsigned integers the largest.

    Args:
        indices: integers of any width, of any shape.
        table: the rows, shape (n, features).
        dtype: the dtype of the result; None for the dtype of the table.

    Returns:
        An array of shape (*indices.shape, features). The gradient of the table is accumulated in at least float32 and
        rounded once, however often a row is used.

    Raises:
        OperandError: for indices that are not integers; a `TypeError`.
        ArgumentError: for an index out of range, or a table of a different shape; a `ValueError`.

    >>> table = jnp.asarray([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> embedding(jnp.asarray([2, 0], "uint8"), table, dtype="bfloat16")
    Array([[4, 5],
           [0, 1]], dtype=bfloat16)
    >>> embedding(3, table)
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: indices must be from 0 to 2 for a table of 3 rows, got 3
    >>> jax.jit(embedding)(3, table)
    Array([nan, nan], dtype=float32)
    """
    (table,) = promote_arrays(table, inexact=False)
    row = as_format(table.dtype)
    target = row.dtype if dtype is None else common_dtype(table, dtype=dtype)
    if table.ndim != 2:
        raise ArgumentError(f"the table must have shape (rows, features), got {table.shape}")
    index_format = as_format(result_type(indices, rules=get_rules()))
    if index_format.category != "integer":
        raise OperandError(f"indices must be integers, got {index_format}; use indices.astype('int32')")
    _check_known(indices, index_format, table.shape[0])
    (indices,) = promote_arrays(indices, inexact=False)
    if index_format.bits > as_format("int32").bits:  # JAX narrows them, and 2**32 would become 0
        rows = table.shape[0]
        indices = jnp.where((indices < 0) | (indices >= rows), rows, indices)
    if row.is_inexact:  # widened first, so the gradient is accumulated before it is rounded
        table = table.astype(at_least_float32(row))
    return table.at[indices].get(mode="fill", wrap_negative_indices=False).astype(target)


def attend(
    x: ArrayLike, table: ArrayLike, *, dtype: DTypeLike | None = None, precision: lax.PrecisionLike = None
) -> jax.Array:
    """Multiply inputs by every row of a table, `x @ table.T`.

    Args:
        x: inputs, shape (..., features).
        table: the rows, shape (n, features).
        dtype: the dtype to compute in; None for the result type of the arrays.
        precision: the precision of the products on the device, such as `"highest"`, as in JAX; None for JAX's default.

    Returns:
        An array of shape (..., n) in that dtype.

    Raises:
        ArgumentError: for shapes that do not match; a `ValueError`.

    >>> attend(jnp.asarray([1.0, 10.0]), jnp.asarray([[0.0, 1.0], [2.0, 3.0]]))
    Array([10., 32.], dtype=float32)
    """
    refuse_none(x=x, table=table)
    x, table = promote_arrays(x, table, dtype=dtype)
    if table.ndim != 2 or x.ndim < 1 or x.shape[-1] != table.shape[-1]:
        raise ArgumentError(
            f"inputs and table must have shapes (..., features) and (rows, features), got {x.shape} and {table.shape}"
        )
    return lax.dot_general(x, table, (((x.ndim - 1,), (1,)), ((), ())), as_precision(precision))


def _check_known(indices: Any, row: Format, rows: int) -> None:
    if isinstance(indices, Tracer):
        return
    if isinstance(indices, (int, type)):
        indices = whole_number("an index", indices, -(2**63), 2**63 - 1)
    values = np.asarray(indices)
    if row.bits < 64:  # narrow integers cannot be compared with larger numbers
        values = values.astype(np.int64)
    outside = (values < 0) | (values >= rows)
    if np.any(outside):
        wrong = int(values[outside].flat[0]) if values.ndim else int(values)
        raise ArgumentError(
            f"indices must be from 0 to {rows - 1} for a table of {rows} rows, got {wrong}"
            if rows
            else f"the table must have at least one row, got 0 rows and index {wrong}"
        )
