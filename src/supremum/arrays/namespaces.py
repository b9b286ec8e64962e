"""`Namespace`: the functions of the Python array API standard for one library, under the rules in force."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from supremum.argument_checks import chosen
from supremum.arrays.array_api_names import CONSTANTS, FFT, FUNCTIONS, LINALG, VERSION, VERSIONS
from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.backends import Backend, backend_named
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.calls import Function
from supremum.arrays.functions import elementwise
from supremum.arrays.functions.compositions import COMPOSED_FUNCTIONS
from supremum.arrays.functions.creation import CREATION_FUNCTIONS
from supremum.arrays.functions.inspection import INSPECTION_FUNCTIONS
from supremum.arrays.functions.losses import LOSSES
from supremum.arrays.functions.promoting import PROMOTING_FUNCTIONS
from supremum.arrays.functions.reductions import REDUCTION_FUNCTIONS
from supremum.arrays.functions.statistics import STATISTICS
from supremum.arrays.functions.sums_of_products import SUMS_OF_PRODUCTS
from supremum.arrays.pass_through_function import PassThroughFunction
from supremum.errors import hide_frames, near_names, shown
from supremum.formats import FORMATS

_ELEMENTWISE = {name: function for name, function in elementwise.FUNCTIONS.items() if name not in LOSSES}
_DTYPES = {row.name: row.dtype for row in FORMATS}
_OURS: Mapping[str, Function | Callable[..., Any]] = {
    **_ELEMENTWISE, **PROMOTING_FUNCTIONS, **SUMS_OF_PRODUCTS, **REDUCTION_FUNCTIONS, **CREATION_FUNCTIONS,
    **INSPECTION_FUNCTIONS, **COMPOSED_FUNCTIONS, **STATISTICS,
}  # fmt: skip
_STANDARD = {"": FUNCTIONS, "linalg": LINALG, "fft": FFT}
_MISSING = object()


def namespace_of(library: str | Backend, api_version: str | None = None) -> Namespace:
    """The namespace of a library; always the same one.

    Args:
        library: its name, or its backend.
        api_version: a version of the standard that the namespace must support; None for any.

    Raises:
        UnknownNameError: for an unknown version or library; a `ValueError`.
    """
    if api_version is not None:
        chosen("api_version", api_version, VERSIONS)
    return namespace_in(backend_named(library))


@functools.cache
def namespace_in(backend: Backend) -> Namespace:
    """The namespace of a library; always the same one."""
    return Namespace(backend)


class Namespace(ModuleType):
    """A namespace of the standard, as `namespace` returns it.

    Each function is made at its first use.

    Args:
        backend: the library.
        part: the name of an extension; empty for the namespace itself.
    """

    def __init__(self, backend: Backend, part: str = "") -> None:
        super().__init__(f"supremum.arrays.{backend.name}{'.' if part else ''}{part}")
        self.__doc__ = f"The Python array API standard {VERSION} under the rules in force, on {backend.name}."
        self.backend: Backend = backend
        self._part = part
        if not part:
            self.__array_api_version__ = VERSION

    def __getattr__(self, name: str) -> Any:
        attribute = self._find(name)
        if attribute is _MISSING:
            near = near_names(name, dir(self))
            hint = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise AttributeError(f"{shown(self)} has no {shown(name)}{hint}", name=name, obj=self)
        setattr(self, name, attribute)
        return attribute

    def _find(self, name: str) -> Any:
        """The object with a name, from our tables or else from the library; `_MISSING` if there is none."""
        backend, part = self.backend, self._part
        full_name = f"{part}.{name}" if part else name
        ours = _OURS.get(full_name)
        if ours is not None:
            return ours.within(backend).call if isinstance(ours, Function) else _bound(backend, name, ours)
        if name.startswith("_"):
            return _MISSING
        if not part:
            if name in _STANDARD:
                return Namespace(backend, name)
            if name in CONSTANTS:
                return getattr(np, name)
            if name in _DTYPES:
                return _DTYPES[name] if _names_dtype(backend, name) else _MISSING
        function = getattr(getattr(backend.xp, part) if part else backend.xp, name, None)
        if not callable(function) or isinstance(function, type):
            return _MISSING
        return PassThroughFunction(full_name, function, standard=name in _STANDARD[part]).within(backend).call

    def __dir__(self) -> list[str]:
        parts = (name.rpartition(".") for name in _OURS)
        names = {*_STANDARD[self._part], *(name for part, _, name in parts if part == self._part)}
        if not self._part:
            dtypes = {name for name in _DTYPES if _names_dtype(self.backend, name)}
            names |= {*CONSTANTS, *dtypes, "linalg", "fft", "__array_api_version__", "__name__"}
        return sorted(names)

    def __repr__(self) -> str:
        return f"<namespace {self.backend.name!r} of supremum{f', {self._part}' if self._part else ''}>"

    def __reduce__(self) -> Any:
        if self._part:
            return getattr, (namespace_of(self.backend), self._part)
        return namespace_of, (self.backend.name,)


def _names_dtype(backend: Backend, name: str) -> bool:
    """Whether the library has a dtype under any flags; NumPy's arrays can have all dtypes of ml_dtypes."""
    return backend is NUMPY or hasattr(backend.xp, name)


def _bound(backend: Backend, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with its first argument, the namespace."""
    xp = namespace_in(backend)

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(xp, *args, **options)
        except Exception as error:
            raise_computation_error(name, backend, args, options, error)
            hide_frames(error)
            raise

    call.__name__ = call.__qualname__ = name
    plain = inspect.signature(function)
    vars(call)["__signature__"] = plain.replace(parameters=[*plain.parameters.values()][1:])
    return call
