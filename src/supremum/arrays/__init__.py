"""Arrays of NumPy, JAX and PyTorch that follow the rule set in force.

They compute with the functions of these libraries, and are not an array library of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from supremum.arrays.array import Array
from supremum.arrays.assignment import check_fits as check_fits
from supremum.arrays.assignment import kept_value as kept_value
from supremum.arrays.assignment import refused_in_place as refused_in_place
from supremum.arrays.assignment import stored as stored
from supremum.arrays.backends.numpy import converted as converted
from supremum.arrays.backends.numpy import narrowed as narrowed
from supremum.arrays.conversion_counts import Conversion, ConversionCounts, ConversionTotal, count_conversions
from supremum.arrays.entry_points import asarray, namespace
from supremum.arrays.errors import (
    ComputationError,
    DeviceError,
    InPlaceError,
    LibraryError,
    NarrowingError,
    RuntimeDtypeError,
    TensorInPlaceError,
)
from supremum.arrays.functions.elementwise import ELEMENTWISE_OPERATIONS as ELEMENTWISE_OPERATIONS
from supremum.arrays.variable import ArrayVariable
from supremum.arrays.wrapped import wrap as wrap
from supremum.public_names import public_names

if TYPE_CHECKING:
    from supremum.arrays.array_types import OperatorTypes as OperatorTypes

__all__ = [
    "Array",
    "ArrayVariable",
    "ComputationError",
    "Conversion",
    "ConversionCounts",
    "ConversionTotal",
    "DeviceError",
    "InPlaceError",
    "LibraryError",
    "NarrowingError",
    "RuntimeDtypeError",
    "TensorInPlaceError",
    "asarray",
    "count_conversions",
    "namespace",
]


def __dir__() -> list[str]:
    return public_names(globals())
