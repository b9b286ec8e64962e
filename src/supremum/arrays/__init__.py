"""Arrays of NumPy, JAX and PyTorch that follow the rule set in force."""

from __future__ import annotations

from supremum.arrays.array import Array
from supremum.arrays.conversion import asarray
from supremum.arrays.conversion_counts import Conversion, ConversionCounts, Total, count_conversions
from supremum.arrays.errors import (
    ComputationError,
    DeviceError,
    InPlaceError,
    LibraryError,
    NarrowingError,
    RuntimeDtypeError,
)
from supremum.arrays.namespaces import namespace
from supremum.arrays.pytrees import register_when_loaded
from supremum.arrays.variable import Variable

__all__ = [
    "Array",
    "ComputationError",
    "Conversion",
    "ConversionCounts",
    "DeviceError",
    "InPlaceError",
    "LibraryError",
    "NarrowingError",
    "RuntimeDtypeError",
    "Total",
    "Variable",
    "asarray",
    "count_conversions",
    "namespace",
]

register_when_loaded()
