"""`namespace`: the Python array API standard's functions, under the rules in force, for the arrays of one library."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from supremum.argument_checks import chosen
from supremum.arrays import ops
from supremum.arrays.array_api_names import CONSTANTS, FFT, FUNCTIONS, LINALG, VERSION, VERSIONS
from supremum.arrays.backend_errors import raise_as_ours
from supremum.arrays.backends import Backend, backend_named
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.functions.creation import MAKING, MAKING_FFT
from supremum.arrays.functions.inspection import INSPECTING
from supremum.arrays.functions.losses import LOSSES
from supremum.arrays.functions.promoting import PROMOTING, PROMOTING_LINALG
from supremum.arrays.functions.reductions import REDUCING
from supremum.arrays.wrapped_functions import arrays_in, at_home, brought_home, generic
from supremum.errors import near_names, shown
from supremum.formats import FORMATS

_ELEMENTWISE = {name: function for name, function in ops.FUNCTIONS.items() if name not in LOSSES}
_DTYPES = {row.name: row.dtype for row in FORMATS}
_PARTS = {"linalg": (LINALG, PROMOTING_LINALG), "fft": (FFT, MAKING_FFT)}


def namespace(library: Any, *, api_version: str | None = None) -> Namespace:
    """The functions of the Python array API standard for one library, under the rules in force.

    What brings arrays together decides by the rules; the rest is the library's own, through `array-api-compat` where
    it does not follow the standard itself. All take and give an `Array`, take arrays of the library and Python
    numbers too, and adopt NumPy's. Functions that the library has besides are there as well, for arrays of one dtype.

    Args:
        library: `"numpy"`, `"jax"` or `"torch"`.
        api_version: a version of the standard that it has to have all of; None for any.

    Returns:
        The namespace, a module by its looks; always the same one.

    Raises:
        UnknownNameError: for another version or library; a `ValueError`.

    >>> import supremum
    >>> xp = namespace("numpy")
    >>> with supremum.use_rules("torch"):
    ...     xp.concat([xp.zeros(1), xp.asarray([1, 2], dtype="int8")])
    Array([0., 1., 2.], dtype=float32)
    """
    if api_version is not None:
        chosen("api_version", api_version, VERSIONS)
    return _made(backend_named(library))


@functools.cache
def _made(home: Backend) -> Namespace:
    return Namespace(home)


class Namespace(ModuleType):
    """A namespace of the standard; use `namespace` to get one.

    What it has is made when it is first asked for.

    Args:
        home: the library.
        part: the name of an extension; empty for the namespace itself.
    """

    def __init__(self, home: Backend, part: str = "") -> None:
        super().__init__(f"supremum.arrays.{home.name}{'.' if part else ''}{part}")
        self.__doc__ = f"The Python array API standard {VERSION} under the rules in force, on {home.name}."
        self._home = home
        self._part = part
        if not part:
            self.__array_api_version__ = VERSION

    @property
    def _standard(self) -> frozenset[str]:
        """The functions that the standard has here."""
        return _PARTS[self._part][0] if self._part else FUNCTIONS

    @property
    def _own(self) -> Mapping[str, Callable[..., Any]]:
        """Those of ours, which take the library first."""
        return _PARTS[self._part][1] if self._part else PROMOTING | REDUCING | MAKING | INSPECTING

    def __getattr__(self, name: str) -> Any:
        found = self._found(name)
        if found is None:
            near = near_names(name, dir(self))
            hint = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise AttributeError(f"{shown(self)} has no {shown(name)}{hint}", name=name, obj=self)
        setattr(self, name, found.value)
        return found.value

    def _found(self, name: str) -> _Found | None:
        """What stands under a name, from the first of the tables that has it; the library itself is asked last."""
        home = self._home
        if name in self._own:
            return _Found(_bound(home, name, self._own[name]))
        if name.startswith("_"):
            return None
        if not self._part:
            if name in _PARTS:
                return _Found(Namespace(home, name))
            if name in _ELEMENTWISE:
                return _Found(_elementwise(home, name))
            if name in CONSTANTS:
                return _Found(getattr(np, name))
            if name in _DTYPES:
                return _Found(_DTYPES[name]) if _names_dtype(home, name) else None
        function = getattr(getattr(home.xp, self._part) if self._part else home.xp, name, None)
        if not callable(function) or isinstance(function, type):
            return None
        return _Found(generic(home, name, function, standard=name in self._standard))

    def __dir__(self) -> list[str]:
        names = {*self._standard, *self._own}
        if not self._part:
            dtypes = {name for name in _DTYPES if _names_dtype(self._home, name)}
            names |= {*_ELEMENTWISE, *CONSTANTS, *dtypes, *_PARTS, "__array_api_version__", "__name__"}
        return sorted(names)

    def __repr__(self) -> str:
        return f"<namespace {self._home.name!r} of supremum{f', {self._part}' if self._part else ''}>"

    def __reduce__(self) -> Any:
        whole = namespace, (self._home.name,)
        return (getattr, (namespace(self._home.name), self._part)) if self._part else whole


class _Found:
    """What a namespace has under a name; its value may be anything, None too, as `newaxis` is."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _names_dtype(home: Backend, name: str) -> bool:
    """Whether the library has a dtype, however it is set; NumPy's arrays can have all of ml_dtypes."""
    return home is NUMPY or hasattr(home.xp, name)


def _bound(home: Backend, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ours, its library given."""
    computes = name not in MAKING and name not in INSPECTING

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            if computes:
                home.check_computes(name, (array.dtype for array in arrays_in((*args, *options.values()))))
            return function(home, *args, **options)
        except Exception as error:
            raise_as_ours(name, home, args, options, error)
            raise

    call.__name__ = call.__qualname__ = name
    plain = inspect.signature(function)
    vars(call)["__signature__"] = plain.replace(parameters=list(plain.parameters.values())[1:])
    return call


def _elementwise(home: Backend, name: str) -> Callable[..., Any]:
    """An operation, in the library of the namespace."""
    function = _ELEMENTWISE[name]

    @functools.wraps(function)
    def call(*operands: Any) -> Any:
        return brought_home(home, function(*at_home(home, name, operands)))

    return call
