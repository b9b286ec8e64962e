"""Calling functions of a library with wrapped arrays, and bringing operands to the library of a namespace."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from supremum.arrays.array_api_names import GIVING_LISTS, OF_THE_ELEMENTS
from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.backends import Backend, Key, Raw, backend_of
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.conversion import convert
from supremum.arrays.errors import LibraryError
from supremum.arrays.operand_keys import NUMBERS
from supremum.arrays.wrapped import KeyedRaw, Wrap, WrappedArray, raw_and_key
from supremum.decisions import letter
from supremum.errors import OperandError, listed, shown
from supremum.formats import as_format
from supremum.rules import get_rules


def library_of(value: Any) -> Backend | None:
    """The library that an array is from, wrapped or not; None for what is no array."""
    return value.backend if isinstance(value, WrappedArray) else backend_of(value)


def check_library(backend: Backend, name: str, position: int, library: Backend | None) -> None:
    """Raise for an array of another library than that of the namespace or NumPy.

    Args:
        backend: the library of the namespace.
        name: of the function.
        position: which argument it is.
        library: the one the argument is from; None for what is no array.

    Raises:
        LibraryError: for another library.
    """
    if library not in (None, NUMPY, backend):
        raise LibraryError(
            f"{name}: {letter(position)} is from {library.name}, and this is the namespace of {backend.name}: "
            f"supremum.namespace({shown(backend.name)}).asarray({letter(position)})"
        )


def adopt_operands(backend: Backend, name: str, operands: Sequence[Any]) -> list[Any]:
    """Operands of which at least one is from the library of a namespace, if any of them is an array.

    Of Python numbers alone the first becomes a weak array of that library, under rules that have weak arrays.

    Args:
        backend: that library.
        name: of the function.
        operands: arrays and whatever else.

    Raises:
        LibraryError: for arrays of a third library.
    """
    libraries = [library_of(operand) for operand in operands]
    for position, library in enumerate(libraries):
        check_library(backend, name, position, library)
    adopted = list(operands)
    if backend not in libraries:
        found = [i for i, library in enumerate(libraries) if library is NUMPY]
        if not found and get_rules(in_jax=backend.in_jax).weak_arrays:
            found = [i for i, operand in enumerate(operands) if type(operand) in NUMBERS]
        for first in found[:1]:
            adopted[first] = WrappedArray(*convert(operands[first], library=backend))
    return adopted


def adopt_result(backend: Backend, result: KeyedRaw) -> KeyedRaw:
    """A result in the library of the namespace, where it was computed of Python numbers alone.

    Args:
        backend: that library.
        result: an array of any library, and its key.
    """
    return result if result[1].backend is backend else convert(WrappedArray(*result), library=backend)


def native(backend: Backend, dtype: Any) -> Any:
    """What a library calls a dtype; None stays.

    Raises:
        UnknownDtypeError: for what names no dtype.
        RuntimeDtypeError: if the library does not have it.
    """
    return None if dtype is None else backend.native_dtype(as_format(dtype).dtype)


def arrays_in(values: Iterable[Any]) -> Iterator[WrappedArray]:
    """The wrapped arrays among values, and in lists among them."""
    for value in values:
        if isinstance(value, WrappedArray):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from arrays_in(cast("Sequence[Any]", value))


def call_in(
    backend: Backend,
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    *,
    checks: bool = True,
) -> Any:
    """Call one of our own functions of a namespace; errors of its library become `ComputationError`.

    Args:
        backend: the library, the first argument of the function.
        name: of the function.
        function: the function.
        args: its other arguments.
        options: its arguments by name.
        checks: whether a format that the library does not compute in is refused.

    Raises:
        RuntimeDtypeError: if it is refused.
        ComputationError: for errors of the library.
    """
    try:
        if checks:
            backend.check_computes(name, (array.dtype for array in arrays_in((*args, *options.values()))))
        return function(backend, *args, **options)
    except Exception as error:
        raise_computation_error(name, backend, args, options, error)
        raise


def generic(
    backend: Backend, name: str, function: Callable[..., Any], wrap: Wrap, *, standard: bool
) -> Callable[..., Any]:
    """A function of a library as one of wrapped arrays.

    Args:
        backend: the library.
        name: of the function.
        function: the function.
        wrap: makes a wrapped array of an array and its key.
        standard: whether the standard has it, and says what becomes of arrays of several dtypes. Other functions would
            follow the library's own rules, and so take arrays of one dtype only.
    """

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return compute(args, dict(options))
        except Exception as error:
            raise_computation_error(name, backend, args, options, error)
            raise

    def compute(args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        keys: list[Key] = []
        if "dtype" in options:
            options["dtype"] = native(backend, options["dtype"])
        plain = [_unwrapped(backend, name, value, keys) for value in args]
        given = {option: _unwrapped(backend, name, value, keys) for option, value in options.items()}
        backend.check_computes(name, (key.operand.format.dtype for key in keys))
        if not standard:
            _check_of_one_dtype(name, keys)
        weak = [key.weak for key in keys] if name in OF_THE_ELEMENTS else []
        result = function(*plain, **given)
        return _wrapped(list(result) if name in GIVING_LISTS else result, keys, weak, wrap)

    call.__name__ = call.__qualname__ = name
    return call


def _unwrapped(backend: Backend, name: str, value: Any, keys: list[Key]) -> Any:
    """An argument as the library takes it; the keys of the arrays in it are added to a list."""
    if isinstance(value, (list, tuple)):
        parts = [_unwrapped(backend, name, part, keys) for part in cast("Sequence[Any]", value)]
        return _rebuilt(value, parts)
    if isinstance(value, np.dtype):
        return native(backend, value)
    library = library_of(value)
    # NumPy's scalars stand for Python's where a shape or an axis is wanted.
    if library is None or isinstance(value, np.generic):
        return value
    check_library(backend, name, len(keys), library)
    raw, key = raw_and_key(value) if library is backend else convert(value, library=backend)
    keys.append(key)
    return raw


def _wrapped(result: Any, keys: Sequence[Key], weak: Sequence[bool], wrap: Wrap) -> Any:
    """A result with all arrays in it wrapped; several are as weak as the arguments in their places."""
    if isinstance(result, (list, tuple)):
        parts = cast("Sequence[Raw]", result)
        fields = getattr(result, "_fields", ("values",) * len(parts))
        of_each = len(parts) == len(keys)
        wrapped: list[Any] = []
        for i, (part, field) in enumerate(zip(parts, fields, strict=True)):
            where = slice(i, i + 1) if of_each else slice(None)
            wrapped.append(_wrapped(part, keys[where], weak[where] if field == "values" else (), wrap))
        return _rebuilt(result, wrapped)
    if backend_of(result) is None:
        return result
    raw, key = raw_and_key(result)
    if any(weak[:1]) and key.dtype == keys[0].dtype:
        return wrap(*raw_and_key(raw, weak=True))
    return wrap(raw, key)


def _rebuilt(like: Any, parts: list[Any]) -> Any:
    make = getattr(like, "_make", type(like))  # of a named tuple
    return make(parts)


def _check_of_one_dtype(name: str, keys: Sequence[Key]) -> None:
    dtypes = list(dict.fromkeys(key.dtype for key in keys))
    if len(dtypes) > 1:
        both = listed(f"{letter(i)} {key.dtype}" for i, key in enumerate(keys))
        other = next(i for i, key in enumerate(keys) if key.dtype != dtypes[0])
        raise OperandError(
            f"{name} is not in the array API standard, so no rule decides its dtype, and its arrays must have the "
            f"same one, got {both}; cast first, with {letter(other)}.astype({shown(str(dtypes[0]))})"
        )
