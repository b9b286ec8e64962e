"""Functions that promote nothing, such as `reshape` and `zeros`: the library's own, whose results are wrapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from supremum.arrays.array_api_names import GIVING_LISTS, KEEPING_DTYPE, OF_THE_ELEMENTS, TAKING_POSITIONS
from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.backends import Backend, Key, Raw, backend_of
from supremum.arrays.backends.numpy import NUMPY, narrowed
from supremum.arrays.conversion import convert
from supremum.arrays.dispatch import Function, Prepared, leaves
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.operand_keys import check_library, joint_backend, library_of
from supremum.arrays.wrapped import WrappedArray, new_array, raw_and_key, unwrapped, wrapper
from supremum.decisions import ResultType, letter
from supremum.errors import OperandError, listed, shown
from supremum.formats import argument_dtype, as_format
from supremum.rules import SCOPE, memory_of


def native(backend: Backend, dtype: Any) -> Any:
    """A library's own object for a dtype; None for None.

    Raises:
        UnknownDtypeError: for anything that is not a dtype.
        ArgumentError: for a name that means another dtype in NumPy.
        RuntimeDtypeError: if the library does not have it.
    """
    return None if dtype is None else backend.native_dtype(argument_dtype(dtype))


class Undecided(Function):
    """A function of a library that promotes nothing.

    Args:
        name: its name.
        arguments: a function with its parameters.
        build: makes a function of the arrays from a library and the other arguments; None for the library's function of
            that name.
        doc: as for `Function`.
        result: returns the dtype of the result and whether it is weak, from the key of the first array, the arguments
            and the options; None where only the library knows.
        standard: whether it is in the standard, which says how it treats arrays of several dtypes. Other functions
            would follow the library's own rules, so all their arrays must have one dtype.
    """

    def __init__(
        self, name: str, arguments: Callable[..., Any], build: Callable[..., Callable[..., Raw]] | None = None,
        doc: str = "", *, result: Callable[..., ResultType | None] | None = None, standard: bool = True,
    ) -> None:  # fmt: skip
        self._build, self._standard = build, standard
        self._result = result or (_dtype_of_first if name.rpartition(".")[2] in KEEPING_DTYPE else _unknown)
        super().__init__(name, arguments, doc)

    def examine(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Convert arrays to one library, prepare, and compute.

        Raises:
            LibraryError: for arrays of a third library.
            OperandError: for arrays of several dtypes, if the function is not in the standard.
        """
        memory = memory_of(SCOPE.get().rules)
        library = self.backend or NUMPY
        try:
            library = self.backend or joint_backend(map(library_of, leaves((args, *options.values()))))
            arrays: list[WrappedArray] = []
            place = partial(_mapped, partial(_placed, library, self.name, arrays))
            places = [*map(place, args)], {name: place(value) for name, value in options.items()}
            keys = [array.key for array in arrays]  # an array may be new from a tree of JAX, and have no key yet
            converted = _filled(arrays, *places)
            prepared = self.recall(memory, *converted)[0] or self._prepare(library, *places, keys)
            raws = [array.unwrap() for array in arrays]
            result = prepared.result(raws)
        except Exception as error:
            raise_computation_error(self.name, library, args, options, error)
            raise
        self.remember(memory, *converted, raws, prepared)
        return result

    def _prepare(
        self, library: Backend, args: Sequence[Any], options: Mapping[str, Any], keys: Sequence[Key]
    ) -> Prepared:
        """A function of the arrays of a call.

        Args:
            library: the library.
            args: the arguments, with places instead of arrays.
            options: the arguments by name, likewise.
            keys: of the arrays.
        """
        name, count = self.name.rpartition(".")[2], len(keys)
        if self._build is not None:
            run = self._build(library, *args[count:], **options)
        else:
            library.check_computes(self.name, (key.operand.format.dtype for key in keys))
            if not self._standard:
                _check_of_one_dtype(self.name, keys)
            function = library.function(self.name)
            to_native = partial(_mapped, lambda value: native(library, value) if isinstance(value, np.dtype) else value)
            given = {option: value if option == "dtype" else to_native(value) for option, value in options.items()}
            function = partial(_call_for_dtype, library, function) if "dtype" in options else function
            places = [*map(to_native, args)]
            come_first = len(places) >= count and all(isinstance(each, _Place) for each in places[:count])
            if come_first:
                run = library.with_arguments(self.name, function, count, places[count:], given)
            else:
                run = partial(_call_in, function, places, given)
        function = library.compiled(name, run, count)
        result = self._result(keys[:1], args, options)
        if result is None or not library.keeps(result, keys):
            return Prepared(_finished(library, name, function, keys), None)
        return Prepared(function, wrapper(*library.keys_of_results(result, keys[0].device)))


def _dtype_of_first(keys: Sequence[Key], args: Sequence[Any], options: Mapping[str, Any]) -> ResultType | None:
    if not args or not isinstance(args[0], _Place) or not options.keys().isdisjoint(("dtype", "device")):
        return None
    return ResultType(keys[0].operand.format.dtype, keys[0].weak)


def _unknown(*_: Any) -> None: ...


def _finished(library: Backend, name: str, run: Callable[..., Any], keys: Sequence[Key]) -> Callable[..., Any]:
    """A function of arrays whose results are wrapped."""
    weak = [key.weak for key in keys] if name in OF_THE_ELEMENTS else []
    gives_list, described_by = name in GIVING_LISTS, library.described_by
    last: tuple[Any, Callable[[Raw], Any]] = None, _return

    def finished(*raws: Raw) -> Any:
        nonlocal last
        result = run(*raws)
        seen, wrap = last
        if getattr(result, described_by, None) is seen is not None:
            return wrap(result)
        if True in weak or backend_of(result) is not library:
            return _wrapped(list(result) if gives_list else result, keys, weak)
        raw, key = library.keyed(result)
        keys_of_results = library.keys_of_results(ResultType(key.operand.format.dtype, key.weak), key.device)
        last = getattr(result, described_by, None), wrapper(*keys_of_results)
        return new_array(raw, key)

    return finished


def _return(value: Any) -> Any:
    return value


class _Place(int):
    """The position of an array among the arrays of a call."""


def _call_for_dtype(library: Backend, function: Callable[..., Any], *raws: Raw, dtype: Any, **options: Any) -> Any:
    return function(*raws, dtype=native(library, dtype), **options)  # JAX's flags may have changed


def _call_in(function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any], *raws: Raw) -> Any:
    places, named = _filled(raws, args, options)
    return function(*places, **named)


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """A value, or the values in nested lists, after a change."""
    if isinstance(value, (list, tuple)):
        return _rebuilt(value, [_mapped(change, part) for part in cast("Sequence[Any]", value)])
    return change(value)


def _placed(library: Backend, name: str, arrays: list[WrappedArray], value: Any) -> Any:
    """A value, or the place of an array, which is converted to a library and appended to `arrays`.

    Raises:
        LibraryError: for arrays of a third library.
        RuntimeDtypeError: for a dtype that the library does not have.
        NarrowingError: for positions that its dtype of indices does not hold.
    """
    found = library_of(value)
    # NumPy's scalars serve as Python numbers, for example as a shape or an axis.
    if found is None or isinstance(value, np.generic):
        return value
    check_library(library, name, len(arrays), found)
    is_ready = found is library and isinstance(value, WrappedArray)
    try:
        arrays.append(value if is_ready else convert(value, library=library))
    except RuntimeDtypeError:
        if not arrays or name not in TAKING_POSITIONS:
            raise
        index = as_format(library.xp.__array_namespace_info__().default_dtypes()["indexing"]).dtype
        arrays.append(convert(narrowed(index, np.asarray(unwrapped(value))), library=library))
    return _Place(len(arrays) - 1)


def _filled(arrays: Sequence[Any], args: Sequence[Any], options: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call with arrays in their places."""
    fill = partial(_mapped, lambda value: arrays[value] if isinstance(value, _Place) else value)
    return [*map(fill, args)], {name: fill(value) for name, value in options.items()}


def _wrapped(result: Any, keys: Sequence[Key], weak: Sequence[bool]) -> Any:
    """A result with all arrays in it wrapped; each of several is as weak as the argument in its place."""
    if isinstance(result, (list, tuple)):
        parts = cast("Sequence[Raw]", result)
        fields = getattr(result, "_fields", ("values",) * len(parts))
        of_each = len(parts) == len(keys)
        wrapped: list[Any] = []
        for i, (part, field) in enumerate(zip(parts, fields, strict=True)):
            where = slice(i, i + 1) if of_each else slice(None)
            wrapped.append(_wrapped(part, keys[where], weak[where] if field == "values" else ()))
        return _rebuilt(result, wrapped)
    if backend_of(result) is None:
        return result
    raw, key = raw_and_key(result)
    return new_array(*raw_and_key(raw, weak=any(weak[:1]) and key.dtype == keys[0].dtype))


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
