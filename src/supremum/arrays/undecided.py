"""Functions that promote nothing, such as `reshape` and `zeros`: the library's own, whose results are wrapped."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from supremum.arrays.array_api_names import GIVING_LISTS, OF_THE_ELEMENTS
from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.backends import Backend, Key, Raw, backend_of
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.conversion import convert
from supremum.arrays.dispatch import Function, Prepared, leaves
from supremum.arrays.operand_keys import check_library, joint_backend, library_of
from supremum.arrays.wrapped import WrappedArray, new_array, raw_and_key, wrapper
from supremum.decisions import ResultType, letter
from supremum.errors import OperandError, listed, shown
from supremum.formats import as_format
from supremum.rules import SCOPE, Memory, memory_of


def native(backend: Backend, dtype: Any) -> Any:
    """A library's own object for a dtype; None for None.

    Raises:
        UnknownDtypeError: for anything that is not a dtype.
        RuntimeDtypeError: if the library does not have it.
    """
    return None if dtype is None else backend.native_dtype(as_format(dtype).dtype)


class Undecided(Function):
    """A function of a library that promotes nothing.

    Args:
        name: its name.
        arguments: a function with its parameters.
        build: makes a function of the arrays from a library and the other arguments; None for the library's function of
            that name.
        doc: as for `Function`.
        standard: whether it is in the standard, which says how it treats arrays of several dtypes. Other functions
            would follow the library's own rules, so all their arrays must have one dtype.
    """

    def __init__(
        self, name: str, arguments: Callable[..., Any], build: Callable[..., Callable[..., Raw]] | None = None,
        doc: str = "", *, standard: bool = True,
    ) -> None:  # fmt: skip
        self._build, self._standard = build, standard
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
            places = [_placed(library, self.name, value, arrays) for value in args]
            named = {name: _placed(library, self.name, value, arrays) for name, value in options.items()}
            keys = [array.key for array in arrays]  # an array may be new from a tree of JAX, and have no key yet
            converted = _filled(places, arrays), {name: _filled(value, arrays) for name, value in named.items()}
            prepared = self.recall(memory, *converted) or self._prepare(library, places, named, arrays, keys)
            raws = [array.unwrap() for array in arrays]
            result = prepared.result(raws)
        except Exception as error:
            raise_computation_error(self.name, library, args, options, error)
            raise
        self.remember(memory, *converted, raws, prepared)
        return result

    def _prepare(
        self,
        library: Backend,
        places: Sequence[Any],
        named: Mapping[str, Any],
        arrays: Sequence[WrappedArray],  # noqa: ARG002 (`Creation` reads their values)
        keys: Sequence[Key],
    ) -> Prepared:
        """A function of the arrays of a call.

        Args:
            library: the library.
            places: the arguments, with places instead of arrays.
            named: the arguments by name, likewise.
            arrays: the arrays.
            keys: of the arrays.
        """
        name = self.name.rpartition(".")[2]
        library.check_computes(self.name, (key.operand.format.dtype for key in keys))
        if not self._standard:
            _check_of_one_dtype(self.name, keys)
        given, rest = _natively(library, {**named}), places[len(keys) :]
        if self._build is not None:
            run = self._build(library, *rest, **named)
        elif all(isinstance(each, _Place) for each in places[: len(keys)]):
            run = partial(library.function(self.name), **given) if given else library.function(self.name)
            run = partial(_call_before, run, _natively(library, rest)) if rest else run
        else:
            run = partial(_call_in, library.function(self.name), _natively(library, places), given)
        return Prepared(_finished(library, name, library.compiled(name, run), keys), None)


def _finished(library: Backend, name: str, run: Callable[..., Any], keys: Sequence[Key]) -> Callable[..., Any]:
    """A function of arrays whose results are wrapped."""
    weak = [key.weak for key in keys] if name in OF_THE_ELEMENTS else []
    gives_list, has_flags, wrap = name in GIVING_LISTS, library.flags() is not None, None

    def finished(*raws: Raw) -> Any:
        nonlocal wrap
        result = run(*raws)
        if wrap is not None:
            return wrap(result)
        if True in weak or backend_of(result) is not library:
            return _wrapped(list(result) if gives_list else result, keys, weak)
        raw, key = library.keyed(result)
        if not has_flags:  # the next results have the same dtype
            wrap = wrapper(*library.keys_of_results(ResultType(key.operand.format.dtype), key.device))
        return new_array(raw, key)

    return finished


class Creation(Undecided):
    """A function of a namespace that makes an array from numbers.

    Args:
        name: its name.
        build: a function of a library and the arguments; it returns a function without arguments.
    """

    def __init__(self, name: str, build: Callable[..., Callable[[], Raw]]) -> None:
        def arguments(*_: Any, **__: Any) -> None: ...

        plain = inspect.signature(build)
        vars(arguments)["__signature__"] = plain.replace(parameters=[*plain.parameters.values()][1:])
        super().__init__(name, arguments, build, build.__doc__ or "")

    def _flags_of(self, backend: Backend) -> Callable[[], Hashable] | None:  # default dtypes depend on them
        return backend.flags if backend.flags() is not None else None

    def remember(
        self, memory: Memory, args: Sequence[Any], options: Mapping[str, Any], raws: Sequence[Raw], prepared: Prepared
    ) -> None:
        """As in the base class, but not for calls with arrays, whose values matter."""
        if not raws:
            super().remember(memory, args, options, raws, prepared)

    def _prepare(
        self,
        library: Backend,
        places: Sequence[Any],
        named: Mapping[str, Any],
        arrays: Sequence[WrappedArray],
        keys: Sequence[Key],  # noqa: ARG002
    ) -> Prepared:
        assert self._build is not None
        given = {name: _filled(value, arrays) for name, value in named.items()}
        make = library.compiled(self.name, self._build(library, *_filled(places, arrays), **given))
        return Prepared(_finished(library, self.name, lambda *_: make(), ()), None)


class _Place(int):
    """The position of an array among the arrays of a call."""


def _call_before(function: Callable[..., Any], rest: Sequence[Any], *raws: Raw) -> Any:
    return function(*raws, *rest)


def _call_in(function: Callable[..., Any], places: Sequence[Any], named: Mapping[str, Any], *raws: Raw) -> Any:
    return function(*_filled(places, raws), **{name: _filled(value, raws) for name, value in named.items()})


def _placed(library: Backend, name: str, value: Any, arrays: list[WrappedArray]) -> Any:
    """An argument with places instead of arrays, which are converted to a library and appended to `arrays`.

    Raises:
        LibraryError: for arrays of a third library.
    """
    if isinstance(value, (list, tuple)):
        return _rebuilt(value, [_placed(library, name, part, arrays) for part in cast("Sequence[Any]", value)])
    found = library_of(value)
    # NumPy's scalars serve as Python numbers, for example as a shape or an axis.
    if found is None or isinstance(value, np.generic):
        return value
    check_library(library, name, len(arrays), found)
    is_ready = found is library and isinstance(value, WrappedArray)
    arrays.append(value if is_ready else convert(value, library=library))
    return _Place(len(arrays) - 1)


def _filled(value: Any, arrays: Sequence[Any]) -> Any:
    """An argument with arrays in their places."""
    if isinstance(value, (list, tuple)):
        return _rebuilt(value, [_filled(part, arrays) for part in cast("Sequence[Any]", value)])
    return arrays[value] if isinstance(value, _Place) else value


def _natively(library: Backend, value: Any) -> Any:
    """An argument, or arguments by name, with dtypes as the library has them."""
    if isinstance(value, dict):
        options = cast("dict[str, Any]", value)
        return {
            name: native(library, each) if name == "dtype" else _natively(library, each)
            for name, each in options.items()
        }
    if isinstance(value, (list, tuple)):
        return _rebuilt(value, [_natively(library, part) for part in cast("Sequence[Any]", value)])
    return native(library, value) if isinstance(value, np.dtype) else value


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
