"""Calls of functions of arrays: each is read, prepared once for all calls that are written alike, and run.

`read` describes a call by the function, the keys of its arrays and promoted numbers, and the values of its other
arguments. `Function.prepare` makes a function of the arrays for a description that is new. `callable_of` makes the
function that users call: it looks the description up, and runs what was prepared.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import update_wrapper
from typing import Any, NamedTuple, Self, TypeAlias, cast

import numpy as np

from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.backends import Backend, Raw
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.wrapped import NUMBERS, WrappedArray, as_key, joint_backend, library_of, number_key
from supremum.errors import hide_frames
from supremum.rules import SCOPE, RulesLike, memory_of
from supremum.user_frame import compares_with


class Prepared(NamedTuple):
    """A function that carries out a call.

    Args:
        function: takes the arrays and the promoted numbers of the call.
        wrap: makes an `Array` of what it returns; None if that is the finished result.
        explain: returns a clearer error for one that the function raised with the given arguments, or the same error;
            None if it has no clearer errors.
    """

    function: Callable[..., Any]
    wrap: Callable[[Raw], Any] | None = None
    explain: Callable[[Exception, Sequence[Raw]], Exception] | None = None

    def run(self, raws: Sequence[Raw]) -> Any:
        """The result of a call, with its arrays wrapped."""
        try:
            result = self.function(*raws)
        except Exception as error:
            clearer = error if self.explain is None else self.explain(error, raws)
            if clearer is error:
                raise
            raise clearer from error
        return result if self.wrap is None else self.wrap(result)


PreparedCall: TypeAlias = "tuple[Prepared, Sequence[Raw]]"
"""What carries out a call, and the arrays and promoted numbers that it takes.

If these are the arrays and numbers of the call in their order, it also carries out later calls that are written alike.
"""


def read(
    function: Function, args: Sequence[Any], options: Mapping[str, Any], rules_like: RulesLike
) -> tuple[tuple[Hashable, ...], list[Raw]]:
    """What identifies a call, and the arrays and promoted numbers in it.

    Args:
        function: what is called.
        args: the arguments by position.
        options: the arguments by name.
        rules_like: the rules in force; numbers that these rules treat alike are one.

    Raises:
        TypeError: for arguments that may change.
    """
    description: list[Hashable] = [function]
    raws: list[Raw] = []
    for position, value in enumerate(args):
        if isinstance(value, WrappedArray):  # as below, in fewer steps
            try:
                description.append(value._key)  # pyright: ignore[reportPrivateUsage]
            except AttributeError:
                description.append(value.key)
            raws.append(value._raw)  # pyright: ignore[reportPrivateUsage]
        else:
            _read_value(value, rules_like, position < function.operands, description, raws)
    for name, value in options.items():
        description.append(name)
        _read_value(value, rules_like, False, description, raws)
    if function.by_rank:
        description += [getattr(raw, "ndim", 0) for raw in raws]
    return (*description,), raws


_VALUES: frozenset[type] = frozenset({bool, int, str, type(None)})
_INEXACT: frozenset[type] = frozenset({float, complex})


def _read_value(
    value: Any, rules_like: RulesLike, is_operand: bool, description: list[Hashable], raws: list[Raw]
) -> None:
    """Append what identifies an argument, and the arrays and promoted numbers in it.

    Args:
        value: the argument, or an element of a list.
        rules_like: the rules in force.
        is_operand: whether it can be an operand, so that a number is promoted.
        description: the list of what identifies the call. The type precedes each value, because True equals 1.
        raws: the list of arrays and promoted numbers.
    """
    kind: type = value.__class__
    if isinstance(value, WrappedArray):
        description.append(value.key)
        raws.append(value.unwrap())
    elif kind is tuple or kind is list:
        description += kind, len(value)
        for part in value:
            _read_value(part, rules_like, is_operand, description, raws)
    elif is_operand and kind in NUMBERS:
        description.append(number_key(rules_like, value))
        raws.append(value)
    elif kind in _VALUES:
        description += kind, value
    elif kind in _INEXACT:
        description += kind, repr(value)  # 0.0 equals -0.0
    elif issubclass(kind, (type, np.dtype)) or (issubclass(kind, np.integer) and not is_operand):
        description += kind, value
    else:
        keyed = as_key(value, rules_like)
        if keyed is None:
            raise TypeError(kind)
        raws.append(keyed[0])
        description.append(keyed[1])


class Function(ABC):
    """A function of arrays.

    Args:
        name: its name in the standard, with its extension, or in the library.
        arguments: a function with the same parameters, for help and for `prepare`.
        doc: its docstring; empty for the docstring of `arguments`.

    Attributes:
        call: the function itself.
        backend: the library of the namespace that it belongs to; None for the library of its arrays.
        operands: how many of the arguments by position can be operands, which the rules promote if they are numbers.
        by_rank: whether what is prepared depends on how many dimensions the arrays have.
        reflected: for a comparison, the symbol and the function of the comparison that Python evaluates as this one if
            the left operand does not take the right one: `<` and `less` for `greater`. None for other functions.
    """

    operands: int = 0
    by_rank: bool = False
    reflected: tuple[str, Function] | None = None
    call: Callable[..., Any]

    def __init__(self, name: str, arguments: Callable[..., Any], doc: str = "") -> None:
        self.name: str = name
        self.arguments: Callable[..., Any] = arguments
        self.doc: str = doc
        self.backend: Backend | None = None
        self.call = callable_of(self)

    def within(self, backend: Backend) -> Self:
        """The function in a namespace, which returns arrays of its library."""
        bound = copy.copy(self)
        bound.backend = backend
        bound.call = callable_of(bound)
        return bound

    @abstractmethod
    def prepare(self, rules_like: RulesLike, args: Sequence[Any], options: Mapping[str, Any]) -> PreparedCall:
        """What carries out a call that is new.

        Args:
            rules_like: the rules in force, read once, as another thread may set the default.
            args: the arguments by position.
            options: the arguments by name.
        """

    def find(self, rules_like: RulesLike, args: Sequence[Any], options: Mapping[str, Any]) -> PreparedCall:
        """What carries out a call. If it is new, it is prepared, also for later calls that are written alike."""
        cache = prepared_calls(rules_like)
        try:
            description, raws = read(self, args, options, rules_like)
        except _UNREADABLE:
            description, raws = None, []
        prepared = cache.get(description)
        if prepared is None:
            prepared, operands = self.prepare(rules_like, args, options)
            is_same = len(operands) == len(raws) and all(a is b for a, b in zip(operands, raws, strict=True))
            if description is not None and is_same:
                cache[description] = prepared
            raws = operands
        return prepared, raws

    def fail(self, args: Sequence[Any], options: Mapping[str, Any], error: Exception) -> None:
        """Raise an error of a call as our own; return if that error is to go on as it is."""
        library = self.backend or library_in((args, *options.values()))
        raise_computation_error(self.name, library, args, options, error)


def prepared_calls(rules_like: RulesLike) -> dict[Hashable, Any]:
    """What is prepared under the rules in force. A block with a watcher has its own, because that notifies it."""
    scope = SCOPE.get()
    return (memory_of(rules_like) if scope.watcher is None else scope.memory).prepared


def library_in(values: Sequence[Any]) -> Backend:
    """The first library other than NumPy of arrays among values and in lists of them; NumPy if there is no other."""
    try:
        return joint_backend(map(library_of, _leaves(values)))
    except RecursionError:  # of a list that contains itself, for example
        return NUMPY


def _leaves(values: Sequence[Any]) -> Iterator[Any]:
    """Values, with those in lists among them instead of the lists."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _leaves(cast("Sequence[Any]", value))
        else:
            yield value


def callable_of(function: Function, takes: Callable[[Any], object] | None = None) -> Callable[..., Any]:
    """The function that users call.

    Args:
        function: what it is.
        takes: for an operator of Python, which returns `NotImplemented` for operands that it does not take: whether it
            takes one, as a truth value; None for other functions.
    """
    scope_of = SCOPE.get

    def call(*args: Any, **options: Any) -> Any:
        scope = scope_of()
        rules_like = scope.rules
        try:  # what `find` does, in fewer steps
            description, raws = read(function, args, options, rules_like)
            prepared = scope.memory.prepared.get(description)
        except _UNREADABLE:
            prepared, raws = None, []
        try:
            if prepared is None:
                if takes is not None and not all(map(takes, args)):
                    return NotImplemented
                prepared, raws = function.find(rules_like, args, options)
            return prepared.run(raws)
        except Exception as error:
            if takes is not None and (typed := _error_as_typed(function, args)) is not None:
                raise typed from typed.__cause__
            function.fail(args, options, error)
            hide_frames(error)
            raise

    update_wrapper(call, function.arguments)
    call.__doc__ = function.doc or function.arguments.__doc__
    call.__name__ = call.__qualname__ = function.name.rpartition(".")[2]
    vars(call)[_FUNCTION] = function
    with suppress(ValueError):  # some functions in C have no signature
        vars(call)["__signature__"] = inspect.signature(function.arguments).replace(return_annotation="Array")
    return call


def _error_as_typed(function: Function, args: Sequence[Any]) -> Exception | None:
    """The error of a comparison that failed, with the operands in the order in which the user typed them.

    Python evaluates `1e300 < array` as `array > 1e300`.

    Args:
        function: the operator.
        args: its operands.

    Returns:
        None if the operands are in that order.
    """
    frame = inspect.currentframe()
    caller = frame and frame.f_back and frame.f_back.f_back
    if function.reflected is None or caller is None or len(args) != 2:
        return None
    symbol, typed_function = function.reflected
    if not compares_with(caller, symbol, args[0], is_only_reflected=typed_function is not function):
        return None
    try:
        typed_function.call(*reversed(args))
    except Exception as error:
        hide_frames(error)
        return error
    return None


_FUNCTION = "__supremum_function__"


def function_of(call: Callable[..., Any]) -> Function | None:
    """The function that users call as `call`; None for what is not made by `callable_of`."""
    return getattr(call, _FUNCTION, None)


# A call has arguments that may change, or is nested deeply.
_UNREADABLE = (TypeError, RecursionError)
