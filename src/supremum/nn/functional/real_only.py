"""Refusing complex numbers where what is computed needs an order."""

from __future__ import annotations

from typing import Any

from supremum.errors import OperandError
from supremum.formats import Format, as_format
from supremum.promotion import result_type


def refuse_complex(operation: str, *, dtype: Any = None, **arrays: Any) -> None:
    """Raise for complex numbers, which have no order and so no softmax.

    spec/flax-flip-default-dtypes.md, "Complex number support".

    Args:
        operation: its name, for the message.
        dtype: the dtype that is asked for, or None.
        arrays: arrays or Python numbers by their name; those that are None are passed over.

    Raises:
        OperandError: that names the array and its dtype; a `TypeError`.
    """
    if dtype is not None and as_format(dtype).category == "complex":
        raise OperandError(f"{operation} is not defined for complex numbers: give a real dtype, not {as_format(dtype)}")
    for name, array in arrays.items():
        if array is None:
            continue
        row = as_format(array.dtype if hasattr(array, "dtype") else result_type(array))
        if row.category == "complex":
            raise OperandError(
                f"{operation} is not defined for complex numbers, and {name} is {row}: "
                f"give its real part or its magnitude, as in {name}.real or jnp.abs({name})"
            )


def ordered_format(operation: str, dtype: Any, fix: str) -> Format:
    """The format of values that an operation compares.

    Args:
        operation: its name, for the message.
        dtype: of the values.
        fix: what to give instead of complex ones.

    Raises:
        OperandError: for complex values; a `TypeError`.
    """
    row = as_format(dtype)
    if row.category == "complex":
        raise OperandError(f"{operation}: {row} values have no order: {fix}")
    return row
