"""Refuse complex numbers in operations that compare values."""

from __future__ import annotations

from typing import Any

from supremum.errors import OperandError
from supremum.formats import Format, as_format
from supremum.promotion import result_type


def refuse_complex(operation: str, *, dtype: Any = None, **arrays: Any) -> None:
    """Raise for complex numbers, which have no order and therefore no softmax.

    Flax FLIP, default dtypes, "Complex number support".

    Args:
        operation: the name of the operation, for the message.
        dtype: the requested dtype, or None.
        arrays: arrays or Python numbers by name; None is skipped.

    Raises:
        OperandError: for a complex array or dtype; a `TypeError`.
    """
    if dtype is not None and as_format(dtype).category == "complex":
        raise OperandError(
            f"{operation} is not defined for complex numbers; dtype must be real, got {as_format(dtype)}"
        )
    for name, array in arrays.items():
        if array is None:
            continue
        row = as_format(array.dtype if hasattr(array, "dtype") else result_type(array))
        if row.category == "complex":
            raise OperandError(
                f"{operation} is not defined for complex numbers; {name} must be real, got {row}; use {name}.real or "
                f"jnp.abs({name})"
            )


def ordered_format(operation: str, dtype: Any, fix: str) -> Format:
    """The format of the values that an operation compares.

    Args:
        operation: the name of the operation, for the message.
        dtype: the dtype of the values.
        fix: the fix for complex values, for the message.

    Raises:
        OperandError: for complex values; a `TypeError`.
    """
    row = as_format(dtype)
    if row.category == "complex":
        raise OperandError(f"{operation} must get real values, got {row}, which has no order; {fix}")
    return row
