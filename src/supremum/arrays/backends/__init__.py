"""What `Array` needs of each array library, one file each.

`standard.py` is for any library that follows the array API standard. No dtype is decided here: a backend casts and
computes as a plan says.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import array_api_compat
import numpy as np

from supremum.arrays.backends.base import Backend, CallPlan, Key, Raw, array_key
from supremum.arrays.backends.standard import standard_backend
from supremum.bounded_cache import Bounded
from supremum.errors import UnknownNameError
from supremum.extras import require
from supremum.public_names import public_names

__all__ = ["Backend", "CallPlan", "Key", "Raw", "array_key", "backend_named", "backend_names", "backend_of"]

# The names of the modules in this package and of the libraries, and the backend in each module.
_BACKENDS = {"numpy": "NUMPY", "jax": "JAX", "torch": "TORCH_BACKEND"}
_STANDARD = "__array_namespace_info__"
_BY_TYPE: Bounded[type, Backend] = Bounded(1024)


def backend_names() -> tuple[str, ...]:
    """The names of the libraries."""
    return tuple(_BACKENDS)


def backend_named(name: object) -> Backend:
    """The library with a name; import it.

    Raises:
        UnknownNameError: for an unknown name; the message suggests similar names.
        MissingPackageError: if the library is not installed.
    """
    if isinstance(name, Backend):
        return name
    if isinstance(name, str) and name not in _BACKENDS:
        # An imported library that follows the standard, directly or through array-api-compat.
        for namespace in (f"array_api_compat.{name}", name) if name in sys.modules else ():
            if importlib.util.find_spec(namespace) and hasattr(importlib.import_module(namespace), _STANDARD):
                return standard_backend(namespace)
    if not isinstance(name, str) or name not in _BACKENDS:
        raise UnknownNameError("array library", name, _BACKENDS)
    require(f"The array library {name!r}", name)
    return getattr(importlib.import_module(f"supremum.arrays.backends.{name}"), _BACKENDS[name])


def backend_of(value: object) -> Backend | None:
    """The library of an array; None for anything else. It does not import libraries."""
    kind = type(value)
    backend = _BY_TYPE.get(kind)
    if backend is not None or kind.__module__ == "builtins":
        return backend
    if isinstance(value, (np.ndarray, np.generic)):
        name = "numpy"
    elif (jax := sys.modules.get("jax")) is not None and isinstance(value, jax.Array):
        name = "jax"
    elif (torch := sys.modules.get("torch")) is not None and isinstance(value, torch.Tensor):
        name = "torch"
    else:
        return _BY_TYPE.setdefault(kind, backend) if (backend := _standard(value)) is not None else None
    return _BY_TYPE.setdefault(kind, backend_named(name))


def _standard(value: Any) -> Backend | None:
    """The backend of any other library that follows the standard, directly or through array-api-compat."""
    # Dtypes, namespaces and wrappers such as `Array` have `__array_namespace__` too.
    if not array_api_compat.is_array_api_obj(value):
        return None
    try:
        namespace = array_api_compat.array_namespace(value)
    except TypeError:  # placeholders that JAX puts into trees have an `__array_namespace__` that fails
        return None
    return standard_backend(namespace.__name__)


def __dir__() -> list[str]:
    return public_names(globals())
