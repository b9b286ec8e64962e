"""Functions of arrays: each is prepared once for all calls with the same keys, and then looked up and called.

A call is looked up as it is written: by the function, the keys of its arrays, and the values of its other arguments.
Only a call that is new is examined, which prepares a function of its arrays.
"""

from __future__ import annotations

import copy
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import update_wrapper
from types import MappingProxyType
from typing import Any, NamedTuple, Self, cast

import numpy as np

from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.backends import Backend, Key, Raw
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.fix_trials import retyped
from supremum.arrays.operand_keys import NUMBERS, joint_backend, library_of
from supremum.arrays.wrapped import WrappedArray, new_array
from supremum.rules import SCOPE, Memory


class Prepared(NamedTuple):
    """A function that carries out a call.

    Args:
        function: takes the arrays and the promoted numbers of the call.
        key: the key of the array of a library that it returns; None if it returns the finished result.
    """

    function: Callable[..., Any]
    key: Key | None

    def result(self, raws: Sequence[Raw]) -> Any:
        """The result of a call, with its arrays wrapped."""
        found = self.function(*raws)
        return found if self.key is None else new_array(found, self.key)


class Function(ABC):
    """A function of arrays.

    Args:
        name: its name in the standard, with its extension, or in the library.
        arguments: a function with the same parameters, for help and for `examine`.
        doc: its docstring; empty for that of `arguments`.

    Attributes:
        call: the function itself.
        backend: the library of the namespace that it belongs to; None for the library of its arrays.
        promotes: whether numbers among the arguments are operands, to which rules give a dtype.
        operands: how many of the arguments by position can be operands.
        by_rank: whether what is prepared depends on how many dimensions the arrays have.
    """

    promotes: bool = False
    operands: int = sys.maxsize
    by_rank: bool = False
    call: Callable[..., Any]

    def __init__(self, name: str, arguments: Callable[..., Any], doc: str = "") -> None:
        self.name, self.arguments, self.doc = name, arguments, doc
        self.backend: Backend | None = None
        self.call = caller(self, self.examine)

    def within(self, backend: Backend) -> Self:
        """The function in a namespace, which returns arrays of its library."""
        bound = copy.copy(self)
        bound.backend = backend
        bound.call = caller(bound, bound.examine)
        return bound

    @abstractmethod
    def examine(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """The result of a call that is new; remember what was prepared for it."""

    def recall(
        self, memory: Memory, args: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[Prepared | None, Sequence[Raw]]:
        """What was prepared for calls that are written like this one, and what it takes."""
        known, raws, by_value = _as_written(self, args, options)
        return (memory.by_value if by_value else memory.prepared).get(known), raws

    def remember(
        self, memory: Memory, args: Sequence[Any], options: Mapping[str, Any], raws: Sequence[Raw], prepared: Prepared
    ) -> None:
        """Remember what was prepared for calls that are written like this one.

        Args:
            memory: of the rules in force.
            args: the arguments.
            options: the arguments by name.
            raws: what the prepared function takes. Calls in which it is not found in this order are not remembered.
            prepared: what was prepared.
        """
        known, found, by_value = _as_written(self, args, options)
        if known and len(found) == len(raws) and all(a is b for a, b in zip(found, raws, strict=True)):
            (memory.by_value if by_value else memory.prepared)[known] = prepared

    def fail(self, args: Sequence[Any], options: Mapping[str, Any], error: Exception) -> None:
        """Raise an error of a library as our own; return if that error is to go on as it is."""
        if isinstance(error, RuntimeDtypeError):  # its decision has the numbers of the first call
            error.decision = error.decision and retyped(error.decision, self.operands_of(args, options))
        else:
            library = self.backend or joint_backend(map(library_of, leaves((args, *options.values()))))
            raise_computation_error(self.name, library, args, options, error)

    def operands_of(self, args: Sequence[Any], options: Mapping[str, Any]) -> Sequence[Any]:
        """The operands of a call about which rules decide."""
        return self.arguments(*args, **options)[0]


def leaves(values: Sequence[Any]) -> Iterator[Any]:
    """Values, with those in lists among them instead of the lists."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from leaves(cast("Sequence[Any]", value))
        else:
            yield value


def caller(function: Function, examine: Callable[[Sequence[Any], Mapping[str, Any]], Any]) -> Callable[..., Any]:
    """The function that users call.

    Args:
        function: what it is.
        examine: carries out a call that is new.
    """
    promotes, operands, by_rank, scope_of = function.promotes, function.operands, function.by_rank, SCOPE.get

    def call(*args: Any, **options: Any) -> Any:
        memory = scope_of().memory
        raws: list[Raw] = []
        try:
            if len(args) == 1 and not options and not by_rank and isinstance(array := args[0], WrappedArray):
                raws.append(array._raw)  # pyright: ignore[reportPrivateUsage]
                run, key = memory.prepared[function, array._key]  # pyright: ignore[reportPrivateUsage] (in fewer steps)
            else:
                known: list[Hashable] = [function]
                by_value = _read(args, options, known, raws, promotes, operands)
                if by_rank:
                    known += map(_rank, raws)
                run, key = (memory.by_value if by_value else memory.prepared)[(*known,)]
        except _NEW:
            return examine(args, options)
        try:
            result = run(*raws)
        except Exception as error:
            function.fail(args, options, error)
            raise
        return result if key is None else new_array(result, key)

    update_wrapper(call, function.arguments)
    call.__doc__ = function.doc or function.arguments.__doc__
    call.__name__ = call.__qualname__ = function.name.rpartition(".")[2]
    vars(call)[_FUNCTION] = function
    with suppress(ValueError):  # some functions in C have no signature
        vars(call)["__signature__"] = inspect.signature(function.arguments).replace(return_annotation="Array")
    return call


_FUNCTION = "__supremum_function__"


def function_of(call: Callable[..., Any]) -> Function | None:
    """The function that users call as `call`; None for what is not made by `caller`."""
    return getattr(call, _FUNCTION, None)


# A call is new, has arguments that may change or are nested deeply, or an array is new from a tree of JAX.
_NEW = (KeyError, TypeError, RecursionError, AttributeError)
_VALUES: frozenset[type] = frozenset({bool, int, str, type(None)})


def _read(
    args: Sequence[Any],
    options: Mapping[str, Any],
    known: list[Hashable],
    raws: list[Raw],
    promotes: bool,
    operands: int = sys.maxsize,
) -> bool:
    """Read a call, and return whether it has any arguments but arrays.

    Args:
        args: the arguments.
        options: the arguments by name.
        known: where to append what identifies the call: keys of arrays, and other values with their types, as True
            equals 1.
        raws: where to append the arrays, and the numbers that are promoted.
        promotes: whether numbers among `args` are promoted.
        operands: how many of `args`, from the first one, can be operands.

    Raises:
        TypeError: for arguments that may change.
    """
    by_value = False
    if len(args) > operands:
        by_value = _read(args[operands:], _NO_OPTIONS, known, raws, False)
        args = args[:operands]
    plain = NUMBERS if promotes else _VALUES
    for value in args:
        if isinstance(value, WrappedArray):
            known.append(value._key)  # pyright: ignore[reportPrivateUsage]
            raws.append(value._raw)  # pyright: ignore[reportPrivateUsage]
            continue
        by_value = True
        kind = cast("type[object]", value.__class__)
        if kind in plain:
            known += (kind, value)
            if promotes:
                raws.append(value)
        else:
            _read_value(value, known, raws, promotes)
    if options:
        by_value = True
        for name, value in options.items():
            kind = cast("type[object]", value.__class__)
            if kind in _VALUES:
                known += (name, kind, value)
            else:
                known.append(name)
                _read_value(value, known, raws, False)
    return by_value


def _read_value(value: Any, known: list[Hashable], raws: list[Raw], promotes: bool) -> None:
    """Read an argument; the parameters are those of `_read`."""
    kind = cast("type[object]", value.__class__)
    if kind is tuple or kind is list:
        if not promotes and _VALUES.issuperset(kinds := (*map(type, value),)):
            known += (kind, kinds, *value)
        else:
            known += (kind, len(value))
            _read(value, _NO_OPTIONS, known, raws, promotes)
    elif kind in _VALUES:
        known += (kind, value)
    elif kind is float or kind is complex:
        known += (kind, repr(value))  # 0.0 equals -0.0
    elif isinstance(value, WrappedArray):
        known.append(value.key)
        raws.append(value.unwrap())
    elif isinstance(value, (type, np.dtype)) or (isinstance(value, np.integer) and not promotes):
        known += (kind, value)
    else:
        raise TypeError(kind)


def _rank(raw: Raw) -> int:
    return getattr(raw, "ndim", 0)


_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


def _as_written(
    function: Function, args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[tuple[Hashable, ...], list[Raw], bool]:
    """What identifies a call, its arrays, and whether it has other arguments.

    A call with arguments that may change is identified by nothing.
    """
    known: list[Hashable] = [function]
    raws: list[Raw] = []
    try:
        by_value = _read(args, options, known, raws, function.promotes, function.operands)
        if function.by_rank:
            known += map(_rank, raws)
    except _NEW:
        return (), [], True
    return (*known,), raws, by_value


def frozen(options: Mapping[str, Any]) -> tuple[Hashable, ...]:
    """What identifies checked options: nothing if there are none."""
    known: list[Hashable] = []
    _read((), options, known, [], False)
    return ((*known,),) if known else ()
