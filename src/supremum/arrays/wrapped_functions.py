"""Calls of library functions with wrapped arrays, and conversion of operands to the library of a namespace."""

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
from supremum.arrays.operand_keys import NUMBERS, wrong_library
from supremum.arrays.wrapped import KeyedRaw, Wrap, WrappedArray, raw_and_key
from supremum.decisions import letter
from supremum.errors import OperandError, listed, shown
from supremum.formats import as_format
from supremum.rules import get_rules


def library_of(value: Any) -> Backend | None:
    """The library of an array, wrapped or not; None for anything else."""
    return value.backend if isinstance(value, WrappedArray) else backend_of(value)


def check_library(backend: Backend, name: str, position: int, library: Backend | None) -> None:
    """Raise for an array that is from neither the library of the namespace nor NumPy.

    Args:
        backend: the library of the namespace.
        name: of the function.
        position: of the argument.
        library: the library of the argument; None if it is not an array.

    Raises:
        LibraryError: for any other library.
    """
    if library not in (None, NUMPY, backend):
        raise wrong_library(f"{name}: {letter(position)}, as the namespace,", backend, library, position)


def adopt_operands(backend: Backend, name: str, operands: Sequence[Any]) -> list[Any]:
    """Operands with at least one array of the library of a namespace, if there is an array among them.

    Of Python numbers alone the first becomes a weak array of that library, under rules that have weak arrays.

    Args:
        backend: the library.
        name: of the function.
        operands: arrays and other values.

    Raises:
        LibraryError: for arrays of a third library.
    """
    libraries = [library_of(operand) for operand in operands]
    for position, library in enumerate(libraries):
        check_library(backend, name, position, library)
    adopted = list(operands)
    if backend not in libraries:
        first = libraries.index(NUMPY) if NUMPY in libraries else None
        if first is None and get_rules(in_jax=backend.in_jax).weak_arrays:
            first = next((i for i, operand in enumerate(operands) if type(operand) in NUMBERS), None)
        if first is not None:
            adopted[first] = WrappedArray(*convert(operands[first], library=backend))
    return adopted


def adopt_result(backend: Backend, result: KeyedRaw) -> KeyedRaw:
    """A result in the library of the namespace, even if it was computed from Python numbers alone.

    Args:
        backend: the library.
        result: an array of any library, and its key.
    """
    return result if result[1].backend is backend else convert(WrappedArray(*result), library=backend)


def native(backend: Backend, dtype: Any) -> Any:
    """A library's own object for a dtype; None for None.

    Raises:
        UnknownDtypeError: for anything that is not a dtype.
        RuntimeDtypeError: if the library does not have it.
    """
    return None if dtype is None else backend.native_dtype(as_format(dtype).dtype)


def arrays_in(values: Iterable[Any]) -> Iterator[WrappedArray]:
    """The wrapped arrays among values, and in lists among the values."""
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
    """Call one of our own functions of a namespace; errors of the library become `ComputationError`.

    Args:
        backend: the library, the first argument of the function.
        name: of the function.
        function: the function.
        args: its other arguments.
        options: its arguments by name.
        checks: whether to refuse formats that the library does not compute in.

    Raises:
        RuntimeDtypeError: for a format that is refused.
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
    """A function of wrapped arrays that calls a function of a library.

    Args:
        backend: the library.
        name: of the function.
        function: the function.
        wrap: makes a wrapped array from an array and its key.
        standard: whether the function is in the standard, which says how it treats arrays of several dtypes. Other
            functions would follow the library's own rules, so all their arrays must have one dtype.
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
    """An argument as the library takes it; append the keys of its arrays to `keys`."""
    if isinstance(value, (list, tuple)):
        parts = [_unwrapped(backend, name, part, keys) for part in cast("Sequence[Any]", value)]
        return _rebuilt(value, parts)
    if isinstance(value, np.dtype):
        return native(backend, value)
    library = library_of(value)
    # NumPy's scalars serve as Python numbers, for example as a shape or an axis.
    if library is None or isinstance(value, np.generic):
        return value
    check_library(backend, name, len(keys), library)
    raw, key = raw_and_key(value) if library is backend else convert(value, library=backend)
    keys.append(key)
    return raw


def _wrapped(result: Any, keys: Sequence[Key], weak: Sequence[bool], wrap: Wrap) -> Any:
    """A result with all arrays in it wrapped; each of several is as weak as the argument in its place."""
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
    return getattr(like, "_make", type(like))(parts)  # named tuples have `_make`


def _check_of_one_dtype(name: str, keys: Sequence[Key]) -> None:
    other = next((i for i, key in enumerate(keys) if key.dtype != keys[0].dtype), None)
    if other is not None:
        both = listed(f"{letter(i)} {key.dtype}" for i, key in enumerate(keys))
        raise OperandError(
            f"{name} is not in the array API standard, so no rule decides its dtype, and all its arrays must have the "
            f"same dtype, got {both}; cast first, with {letter(other)}.astype({shown(str(keys[0].dtype))})"
        )
