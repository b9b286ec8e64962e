"""Types of arguments: what is like an array, like a dtype, or a tree of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np


class SupportsDType(Protocol):
    """Anything that has a dtype, such as an array, a column of a data frame, or a type of JAX such as `jnp.bfloat16`.

    >>> has_dtype: SupportsDType = np.ones(3, "float16")
    >>> has_dtype.dtype
    dtype('float16')
    """

    @property
    def dtype(self) -> Any:
        """The dtype, an object of the library that the array is from."""
        ...


class SupportsItemsize(Protocol):
    """A dtype of another library, such as `torch.float16`.

    >>> wide: SupportsItemsize = np.dtype("float64")
    >>> wide.itemsize
    8
    """

    @property
    def itemsize(self) -> int:
        """The size of a number in bytes."""
        ...


class SupportsArray(SupportsDType, Protocol):
    """An array of any library, or what stands for one: a variable, a tracer, or a `jax.ShapeDtypeStruct`.

    >>> array: SupportsArray = np.ones((2, 3))
    >>> array.shape
    (2, 3)
    """

    @property
    def shape(self) -> Any:
        """The length of each axis."""
        ...


Scalar: TypeAlias = "bool | int | float | complex"
"""A Python number.

>>> value: Scalar = 2.5
"""
ArrayLike: TypeAlias = "SupportsArray | Scalar | Sequence[ArrayLike]"
"""An array of any library, a Python number, or sequences of these.

>>> alike: list[ArrayLike] = [np.ones(3), 2.5, [[1, 2], [3, 4]]]
"""
DTypeLike: TypeAlias = str | type[Any] | np.dtype[Any] | SupportsDType | SupportsItemsize
"""A dtype, its name, a type such as `int` or `np.float16`, or something that has a dtype.

>>> alike: list[DTypeLike] = ["int8", np.int8, np.dtype("int8"), np.ones(3, "int8")]
"""
PyTree: TypeAlias = Any
"""An array, or lists, tuples, dicts and registered classes of trees, as `jax.tree` has them.

>>> tree: PyTree = {"dense": {"kernel": np.ones((2, 3)), "bias": np.ones(3)}}
"""
