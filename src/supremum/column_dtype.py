"""`ColumnDtype`, which stands where NumPy has no dtype."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColumnDtype:
    """The dtype of a format that columns of data frames have and NumPy's arrays do not have.

    Decisions and operands have it in place of a NumPy dtype. NumPy, JAX and PyTorch make no array of it.

    Args:
        name: the name of the format.

    >>> import numpy as np
    >>> from supremum import explain
    >>> dtype = explain("uint64", "int8", rules="polars").dtype
    >>> dtype
    dtype(int128)
    >>> np.zeros(3, dtype)
    Traceback (most recent call last):
        ...
    TypeError: Cannot interpret 'dtype(int128)' as a data type
    """

    name: str

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"dtype({self.name})"
