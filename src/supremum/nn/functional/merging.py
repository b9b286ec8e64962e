"""Merge several arrays: sums, products, maxima and concatenation.

Without inexact arrays, integers and bools keep their dtype, since a policy's format may not hold counts and indices.
With inexact arrays, all arrays get one inexact dtype; results are computed in at least float32 and rounded once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format, at_least_float32
from supremum.nn.functional.dtype_promotion import common_dtype, ordered_format, promote_dtype, refuse_none, widened
from supremum.nn.functional.shape_checks import as_axes


def add(*arrays: Any, dtype: Any = None) -> jax.Array:
    """The sum of arrays, value by value.

    Args:
        arrays: arrays with the same number of axes, each of the same length or length 1.
        dtype: the dtype of the result, if one of the arrays is inexact; None for their result type.

    Returns:
        An array in that dtype.

    Raises:
        ArgumentError: for no arrays, or shapes that do not match; a `ValueError`.
        OperandError: for bools, which cannot be added; a `TypeError`.

    >>> add(jnp.asarray([1], "int8"), jnp.asarray([2.5], "bfloat16"))
    Array([3.5], dtype=bfloat16)
    """
    return _folded("add", jnp.add, arrays, dtype)


def subtract(first: Any, second: Any, *, dtype: Any = None) -> jax.Array:
    """The difference of two arrays, value by value; arguments, result and errors are those of `add`.

    >>> subtract(jnp.array([3]), jnp.array([2.0], "float16"))
    Array([1.], dtype=float16)
    """
    return _folded("subtract", jnp.subtract, (first, second), dtype)


def multiply(*arrays: Any, dtype: Any = None) -> jax.Array:
    """The product of arrays, value by value; for bools, whether all are true. Otherwise as `add`.

    >>> multiply(jnp.array([2.0]), jnp.array([3.0]), dtype="bfloat16")
    Array([6], dtype=bfloat16)
    """
    return _folded("multiply", jnp.multiply, arrays, dtype, takes_bools=True)


def maximum(*arrays: Any, dtype: Any = None) -> jax.Array:
    """The maximum of arrays, value by value; for bools, whether one is true. Raises for complex, otherwise as `add`.

    >>> maximum(jnp.array([1.0, 4.0], "float16"), jnp.array([3.0, 2.0], "bfloat16"))
    Array([3., 4.], dtype=float32)
    """
    arrays = _in_one_dtype("maximum", arrays, dtype)
    ordered_format("maximum", arrays[0].dtype, "use jnp.abs(x)")
    return functools.reduce(jnp.maximum, arrays)


def average(*arrays: Any, dtype: Any = None) -> jax.Array:
    """The mean of arrays, value by value, computed in at least float32 and rounded once.

    Args:
        arrays: arrays with the same number of axes, each of the same length or length 1.
        dtype: the dtype of the result; None for the result type, or at least float32 for integers and bools.

    Returns:
        An array in that dtype.

    Raises:
        ArgumentError: for no arrays, or shapes that do not match; a `ValueError`.

    >>> average(jnp.full(1, 6e4, "float16"), jnp.full(1, 6e4, "float16")).tolist()
    [60000.0]
    """
    _check_number("average", arrays)
    target, wide = widened(*arrays, dtype=dtype)
    _check_shapes("average", wide)
    return (functools.reduce(jnp.add, wide) / len(wide)).astype(target)


def concatenate(*arrays: Any, axis: int = -1, dtype: Any = None) -> jax.Array:
    """Join arrays along an axis.

    Args:
        arrays: arrays of the same shape except for that axis.
        axis: the axis.
        dtype: the dtype of the result, if one of the arrays is inexact; None for their result type.

    Returns:
        An array in that dtype.

    Raises:
        ArgumentError: for no arrays, an axis that they do not have, or shapes that do not match; a `ValueError`.

    >>> concatenate(jnp.ones((2, 1), "int8"), jnp.ones((2, 3), "int32")).shape
    (2, 4)
    """
    _check_number("concatenate", arrays)
    arrays = promote_dtype(*arrays, dtype=_dtype_of(arrays, dtype), inexact=False)
    (place,) = as_axes("axis", (axis,), arrays[0].ndim)
    rest = {(*array.shape[:place], *array.shape[place + 1 :]) for array in arrays}
    if len(rest) > 1 or len({array.ndim for array in arrays}) > 1:
        raise ArgumentError(f"concatenate needs arrays of the same shape except for axis {axis}, got {_shapes(arrays)}")
    return jnp.concatenate(arrays, place)


def _folded(
    name: str, function: Callable[[Any, Any], Any], arrays: Any, dtype: Any, *, takes_bools: bool = False
) -> jax.Array:
    arrays = _in_one_dtype(name, arrays, dtype)
    target = arrays[0].dtype
    row = as_format(target)
    if row.category == "bool" and not takes_bools:
        raise OperandError(f"{name} needs numbers, got bools; use x.astype('int32')")
    if row.is_inexact:
        arrays = [array.astype(at_least_float32(target)) for array in arrays]
    return functools.reduce(function, arrays).astype(target)


def _in_one_dtype(name: str, arrays: Any, dtype: Any) -> Any:
    _check_number(name, arrays)
    arrays = promote_dtype(*arrays, dtype=_dtype_of(arrays, dtype), inexact=False)
    _check_shapes(name, arrays)
    return arrays


def _dtype_of(arrays: Any, dtype: Any) -> Any:
    """The given dtype if an array is inexact; None if all are integers and bools."""
    inexact = any(as_format(common_dtype(array, inexact=False)).is_inexact for array in arrays)
    return dtype if inexact else None


def _check_number(name: str, arrays: Any) -> None:
    if not arrays:
        raise ArgumentError(f"{name} needs at least one array, got none")
    refuse_none(**{f"array {number}": array for number, array in enumerate(arrays)})


def _check_shapes(name: str, arrays: Any) -> None:
    same_axes = len({array.ndim for array in arrays}) == 1
    sizes = zip(*(array.shape for array in arrays), strict=False)
    if not same_axes or any(len(set(each) - {1}) > 1 for each in sizes):
        raise ArgumentError(
            f"{name} needs arrays with the same number of axes, each of one length or length 1, got {_shapes(arrays)}"
        )


def _shapes(arrays: Any) -> str:
    return " and ".join(str(array.shape) for array in arrays)
