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
from supremum.arrays.backends import Backend, backend_named
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.functions import elementwise
from supremum.arrays.functions.creation import CREATION_FFT_FUNCTIONS, CREATION_FUNCTIONS
from supremum.arrays.functions.inspection import INSPECTION_FUNCTIONS
from supremum.arrays.functions.losses import LOSSES
from supremum.arrays.functions.promoting import PROMOTING_FUNCTIONS, PROMOTING_LINALG_FUNCTIONS
from supremum.arrays.functions.reductions import REDUCTION_FUNCTIONS
from supremum.arrays.wrapped import Wrap
from supremum.arrays.wrapped_functions import adopt_operands, adopt_result, call_in, generic
from supremum.errors import near_names, shown
from supremum.formats import FORMATS

_ELEMENTWISE = {name: function for name, function in elementwise.FUNCTIONS.items() if name not in LOSSES}
_DTYPES = {row.name: row.dtype for row in FORMATS}
_PARTS = {"linalg": (LINALG, PROMOTING_LINALG_FUNCTIONS), "fft": (FFT, CREATION_FFT_FUNCTIONS)}
_COMPUTING = PROMOTING_FUNCTIONS | REDUCTION_FUNCTIONS
_MISSING = object()


def namespace_of(library: Any, wrap: Wrap, api_version: str | None = None) -> Namespace:
    """The namespace of a library; always the same one.

    Args:
        library: its name, or its backend.
        wrap: makes a result from an array of the library and its key.
        api_version: a version of the standard that the namespace must support; None for any.

    Raises:
        UnknownNameError: for an unknown version or library; a `ValueError`.
    """
    if api_version is not None:
        chosen("api_version", api_version, VERSIONS)
    return _made(backend_named(library), wrap)


@functools.cache
def _made(backend: Backend, wrap: Wrap) -> Namespace:
    return Namespace(backend, wrap)


class Namespace(ModuleType):
    """A namespace of the standard, as `namespace` returns it.

    Each function is made at its first use.

    Args:
        backend: the library.
        wrap: makes a result from an array of the library and its key.
        part: the name of an extension; empty for the namespace itself.
    """

    def __init__(self, backend: Backend, wrap: Wrap, part: str = "") -> None:
        super().__init__(f"supremum.arrays.{backend.name}{'.' if part else ''}{part}")
        self.__doc__ = f"The Python array API standard {VERSION} under the rules in force, on {backend.name}."
        self._backend = backend
        self._wrap = wrap
        self._part = part
        if not part:
            self.__array_api_version__ = VERSION

    @property
    def _standard(self) -> frozenset[str]:
        """The standard's names of functions in this namespace."""
        return _PARTS[self._part][0] if self._part else FUNCTIONS

    @property
    def _own(self) -> Mapping[str, Callable[..., Any]]:
        """Our own functions; their first argument is the library."""
        return _PARTS[self._part][1] if self._part else _COMPUTING | CREATION_FUNCTIONS | INSPECTION_FUNCTIONS

    def __getattr__(self, name: str) -> Any:
        found = self._find(name)
        if found is _MISSING:
            near = near_names(name, dir(self))
            hint = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise AttributeError(f"{shown(self)} has no {shown(name)}{hint}", name=name, obj=self)
        setattr(self, name, found)
        return found

    def _find(self, name: str) -> Any:
        """The object with a name, from our tables or else from the library; `_MISSING` if there is none."""
        backend, wrap = self._backend, self._wrap
        if name in self._own:
            return _bound(backend, name, self._own[name], wrap)
        if name.startswith("_"):
            return _MISSING
        if not self._part:
            if name in _PARTS:
                return Namespace(backend, wrap, name)
            if name in _ELEMENTWISE:
                return _elementwise(backend, name, wrap)
            if name in CONSTANTS:
                return getattr(np, name)
            if name in _DTYPES:
                return _DTYPES[name] if _names_dtype(backend, name) else _MISSING
        function = getattr(getattr(backend.xp, self._part) if self._part else backend.xp, name, None)
        if not callable(function) or isinstance(function, type):
            return _MISSING
        return generic(backend, name, function, wrap, standard=name in self._standard)

    def __dir__(self) -> list[str]:
        names = {*self._standard, *self._own}
        if not self._part:
            dtypes = {name for name in _DTYPES if _names_dtype(self._backend, name)}
            names |= {*_ELEMENTWISE, *CONSTANTS, *dtypes, *_PARTS, "__array_api_version__", "__name__"}
        return sorted(names)

    def __repr__(self) -> str:
        return f"<namespace {self._backend.name!r} of supremum{f', {self._part}' if self._part else ''}>"

    def __reduce__(self) -> Any:
        if self._part:
            return getattr, (namespace_of(self._backend, self._wrap), self._part)
        return namespace_of, (self._backend.name, self._wrap)


def _names_dtype(backend: Backend, name: str) -> bool:
    """Whether the library has a dtype under any flags; NumPy's arrays can have all dtypes of ml_dtypes."""
    return backend is NUMPY or hasattr(backend.xp, name)


def _bound(backend: Backend, name: str, function: Callable[..., Any], wrap: Wrap) -> Callable[..., Any]:
    """One of our own functions, with its library bound and its result wrapped."""
    gives_array = name not in INSPECTION_FUNCTIONS
    checks = gives_array and name not in CREATION_FUNCTIONS

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        result = call_in(backend, name, function, args, options, checks=checks)
        return wrap(*result) if gives_array else result

    call.__name__ = call.__qualname__ = name
    plain = inspect.signature(function)
    returns = "Array" if gives_array else plain.return_annotation
    parameters = list(plain.parameters.values())[1:]
    vars(call)["__signature__"] = plain.replace(parameters=parameters, return_annotation=returns)
    return call


def _elementwise(backend: Backend, name: str, wrap: Wrap) -> Callable[..., Any]:
    """An elementwise operation in the library of the namespace."""
    function = _ELEMENTWISE[name]

    @functools.wraps(function)
    def call(*operands: Any) -> Any:
        return wrap(*adopt_result(backend, function(*adopt_operands(backend, name, operands))))

    vars(call)["__signature__"] = inspect.signature(function).replace(return_annotation="Array")
    return call
