"""Functions that promote nothing, such as `reshape` and `sort`: the library's own, whose results are wrapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from supremum.arrays.array_api_names import GIVING_LISTS, OF_THE_ELEMENTS, TAKING_POSITIONS
from supremum.arrays.backends import Backend, Key, Raw, backend_of
from supremum.arrays.backends.numpy import narrowed
from supremum.arrays.calls import Function, Prepared, PreparedCall, library_in
from supremum.arrays.conversion import convert
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.wrapped import WrappedArray, check_library, library_of, new_array, unwrapped
from supremum.errors import OperandError, listed, shown
from supremum.fix import letter
from supremum.formats import argument_dtype, as_format
from supremum.rules import FOLLOWS_JAX, RulesLike
from supremum.typing import DTypeLike


def native(backend: Backend, dtype: DTypeLike | None) -> Any:
    """A library's own object for a dtype; None for None.

    Raises:
        UnknownDtypeError: for anything that is not a dtype.
        ArgumentError: for a name that means another dtype in NumPy.
        RuntimeDtypeError: if the library does not have it.
    """
    return None if dtype is None else backend.native_dtype(argument_dtype(dtype))


class PassThroughFunction(Function):
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

    def prepare(self, rules_like: RulesLike, args: Sequence[Any], options: Mapping[str, Any]) -> PreparedCall:
        """Convert arrays to one library, and prepare.

        Raises:
            LibraryError: for arrays of a third library.
            OperandError: for arrays of several dtypes, if the function is not in the standard.
        """
        if not isinstance(rules_like, str):  # nothing depends on the rules
            return self.find(FOLLOWS_JAX, args, options)
        library = self.backend or library_in((args, *options.values()))
        if self.name not in TAKING_POSITIONS:
            options = {name: _static_option(value) for name, value in options.items()}
        originals: list[Any] = []
        arrays: list[WrappedArray] = []
        place = partial(_map_nested, partial(_place_array, library, self.name, originals, arrays))
        places = [*map(place, args)], {name: place(value) for name, value in options.items()}
        if any(array is not value for array, value in zip(arrays, originals, strict=True)):
            return self.find(rules_like, *_fill_places(arrays, *places))
        prepared = self._prepare_in(library, *places, [array.key for array in arrays])
        return prepared, [array.unwrap() for array in arrays]

    def _prepare_in(
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
            to_native = partial(
                _map_nested, lambda value: native(library, value) if isinstance(value, np.dtype) else value
            )
            kwargs = {option: value if option == "dtype" else to_native(value) for option, value in options.items()}
            function = partial(_call_for_dtype, library, function) if "dtype" in options else function
            run = _with_arguments(function, count, [*map(to_native, args)], kwargs)
        weak = [key.weak for key in keys] if name in OF_THE_ELEMENTS else []
        gives_list = name in GIVING_LISTS
        return Prepared(
            library.compile_function(name, run, count, standard=self._standard),
            lambda result: _wrap_result(list(result) if gives_list else result, keys, weak),
        )


def _static_option(value: Any) -> Any:
    """The integer in an array without dimensions, such as an axis, which JAX and PyTorch do not take as an array."""
    library = library_of(value)
    if library is None or value.shape != () or library.is_traced(raw := unwrapped(value)):
        return value
    return value.item() if as_format(library.dtype_of(raw)).category == "integer" else value


class _Place(int):
    """The position of an array among the arrays of a call."""


def _call_for_dtype(library: Backend, function: Callable[..., Any], *raws: Raw, dtype: Any, **options: Any) -> Any:
    return function(*raws, dtype=native(library, dtype), **options)  # JAX's flags may have changed


def _with_arguments(
    function: Callable[..., Any], count: int, args: Sequence[Any], options: Mapping[str, Any]
) -> Callable[..., Any]:
    """A function of the arrays of a call, with its other arguments.

    Args:
        function: the function of all arguments.
        count: how many arrays there are.
        args: the arguments, with places instead of arrays.
        options: the arguments by name, likewise.
    """
    first, rest = args[:count], args[count:]
    if len(first) == count and all(isinstance(each, _Place) for each in first):
        return lambda *raws: function(*raws, *rest, **options)

    def run(*raws: Raw) -> Any:
        places, named = _fill_places(raws, args, options)
        return function(*places, **named)

    return run


def _map_nested(change: Callable[[Any], Any], value: Any) -> Any:
    """A value, or the values in nested lists, after a change."""
    if isinstance(value, (list, tuple)):
        return _rebuild(value, [_map_nested(change, part) for part in cast("Sequence[Any]", value)])
    return change(value)


def _place_array(library: Backend, name: str, originals: list[Any], arrays: list[WrappedArray], value: Any) -> Any:
    """A value, or the place of an array, which is appended to `originals`, and to `arrays` converted to a library.

    Raises:
        LibraryError: for arrays of a third library.
        RuntimeDtypeError: for a dtype that the library does not have.
        NarrowingError: for positions that its dtype of indices does not hold.
    """
    source = library_of(value)
    # NumPy's scalars serve as Python numbers, for example as a shape or an axis.
    if source is None or isinstance(value, np.generic):
        return value
    check_library(library, name, len(arrays), source)
    is_ready = source is library and isinstance(value, WrappedArray)
    originals.append(value)
    try:
        arrays.append(value if is_ready else convert(value, library=library))
    except RuntimeDtypeError:
        if not arrays or name not in TAKING_POSITIONS:
            raise
        index = as_format(library.xp.__array_namespace_info__().default_dtypes()["indexing"]).dtype
        arrays.append(convert(narrowed(index, np.asarray(unwrapped(value))), library=library))
    return _Place(len(arrays) - 1)


def _fill_places(
    arrays: Sequence[Any], args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call with arrays in their places."""
    fill = partial(_map_nested, lambda value: arrays[value] if isinstance(value, _Place) else value)
    return [*map(fill, args)], {name: fill(value) for name, value in options.items()}


def _wrap_result(result: Any, keys: Sequence[Key], weak: Sequence[bool]) -> Any:
    """A result with all arrays in it wrapped; each of several is as weak as the argument in its place."""
    if isinstance(result, (list, tuple)):
        parts = cast("Sequence[Raw]", result)
        fields = getattr(result, "_fields", ("values",) * len(parts))
        of_each = len(parts) == len(keys)
        wrapped: list[Any] = []
        for i, (part, field) in enumerate(zip(parts, fields, strict=True)):
            where = slice(i, i + 1) if of_each else slice(None)
            wrapped.append(_wrap_result(part, keys[where], weak[where] if field == "values" else ()))
        return _rebuild(result, wrapped)
    backend = backend_of(result)
    if backend is None:
        return result
    raw, key = backend.with_key(result)
    return new_array(
        *(backend.with_key(raw, weak=True) if any(weak[:1]) and key.dtype == keys[0].dtype else (raw, key))
    )


def _rebuild(like: Any, parts: list[Any]) -> Any:
    return getattr(like, "_make", type(like))(parts)  # named tuples have `_make`


def _check_of_one_dtype(name: str, keys: Sequence[Key]) -> None:
    other = next((i for i, key in enumerate(keys) if key.dtype != keys[0].dtype), None)
    if other is not None:
        both = listed(f"{letter(i)} {key.dtype}" for i, key in enumerate(keys))
        raise OperandError(
            f"{name} is not in the array API standard, so no rule decides its dtype, and all its arrays must have the "
            f"same dtype, got {both}; cast first, with {letter(other)}.astype({shown(str(keys[0].dtype))})"
        )
