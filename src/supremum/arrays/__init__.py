"""Arrays of NumPy, JAX and PyTorch that follow the rule set in force."""

from __future__ import annotations

from supremum.arrays.array import Array
from supremum.arrays.creation import asarray
from supremum.arrays.errors import DeviceError, InPlaceError, LibraryError, RuntimeDtypeError
from supremum.arrays.namespaces import namespace
from supremum.arrays.trees import register_when_loaded

__all__ = [
    "Array",
    "DeviceError",
    "InPlaceError",
    "LibraryError",
    "RuntimeDtypeError",
    "asarray",
    "namespace",
]

register_when_loaded()
