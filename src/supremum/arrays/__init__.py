"""Arrays of NumPy, JAX and PyTorch that follow the rule set in force."""

from __future__ import annotations

from supremum.arrays.array import Array
from supremum.arrays.conversion_counts import Conversion, ConversionCounts, Total, count_conversions
from supremum.arrays.entry_points import asarray, namespace
from supremum.arrays.errors import (
    ComputationError,
    DeviceError,
    InPlaceError,
    LibraryError,
    NarrowingError,
    RuntimeDtypeError,
)
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
