"""Embeddings: rows of a table."""

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
from supremum.nn.functional.dtype_promotion import common_dtype, promote_dtype, refuse_none
from supremum.promotion import result_type
from supremum.rules import get_rules


def embedding(indices: Any, table: Any, *, dtype: Any = None) -> jax.Array:
    """Rows of a table.

    An index that the table does not have, below 0 as well, is refused where its value is known. In a traced function it
    is not: there it gives a row of NaN (of the smallest number, for a table of signed integers, and of the largest, for
    one of unsigned integers), as `mode="fill"` of `jax.numpy.ndarray.at` has it.

    Args:
        indices: integers of any width, of any shape.
        table: the rows, shape (n, features).
        dtype: the dtype of the result; None for the table's.

    Returns:
        An array of shape (*indices.shape, features). Its gradient with respect to the table is added up in at least
        float32 and rounded once, however often a row is taken.

    Raises:
        OperandError: for indices that are not integers; a `TypeError`.
        ArgumentError: for an index outside of the table, and for a table without rows of features; a `ValueError`.

    >>> table = jnp.asarray([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> embedding(jnp.asarray([2, 0], "uint8"), table, dtype="bfloat16")
    Array([[4, 5],
           [0, 1]], dtype=bfloat16)
    >>> embedding(3, table)
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: index 3 is not in a table of 3 rows, 0 to 2
    >>> jax.jit(embedding)(3, table)
    Array([nan, nan], dtype=float32)
    """
    (table,) = promote_dtype(table, inexact=False)
    row = as_format(table.dtype)
    target = row.dtype if dtype is None else common_dtype(table, dtype=dtype)
    if table.ndim != 2:
        raise ArgumentError(f"a table has shape (rows, features), not {table.shape}")
    given = as_format(result_type(indices, rules=get_rules()))
    if given.category != "integer":
        raise OperandError(f"indices are integers, not {given}: give indices.astype('int32')")
    _check_known(indices, given, table.shape[0])
    (indices,) = promote_dtype(indices, inexact=False)
    if given.bits > as_format("int32").bits:  # JAX narrows them: 2**32 would be 0
        rows = table.shape[0]
        indices = jnp.where((indices < 0) | (indices >= rows), rows, indices)
    if row.is_inexact:  # widened first: the gradient is added up before it is rounded
        table = table.astype(at_least_float32(row))
    return table.at[indices].get(mode="fill", wrap_negative_indices=False).astype(target)


def attend(x: Any, table: Any, *, dtype: Any = None) -> jax.Array:
    """The products of inputs with every row of a table, `x @ table.T`.

    Args:
        x: inputs, shape (..., features).
        table: the rows, shape (n, features).
        dtype: the dtype to compute in; None for the one that the arrays meet in.

    Returns:
        An array of shape (..., n) in that dtype.

    Raises:
        ArgumentError: for shapes that do not fit together; a `ValueError`.

    >>> attend(jnp.asarray([1.0, 10.0]), jnp.asarray([[0.0, 1.0], [2.0, 3.0]]))
    Array([10., 32.], dtype=float32)
    """
    refuse_none(x=x, table=table)
    x, table = promote_dtype(x, table, dtype=dtype)
    if table.ndim != 2 or x.ndim < 1 or x.shape[-1] != table.shape[-1]:
        raise ArgumentError(
            f"inputs of shape (..., features) take a table of shape (rows, features), not {x.shape} and {table.shape}"
        )
    return lax.dot_general(x, table, (((x.ndim - 1,), (1,)), ((), ())))


def _check_known(indices: Any, row: Format, rows: int) -> None:
    if isinstance(indices, Tracer):
        return
    if isinstance(indices, (int, type)):
        indices = whole_number("an index", indices, -(2**63), 2**63 - 1)
    values = np.asarray(indices)
    if row.bits < 64:  # narrow integers are not compared with larger numbers
        values = values.astype(np.int64)
    outside = (values < 0) | (values >= rows)
    if np.any(outside):
        wrong = int(values[outside].flat[0]) if values.ndim else int(values)
        last = f", 0 to {rows - 1}" if rows else ""
        raise ArgumentError(f"index {wrong} is not in a table of {rows} rows{last}")
