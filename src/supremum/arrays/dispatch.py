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
from functools import partial, update_wrapper
from typing import Any, NamedTuple, Self, TypeAlias, cast

from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.backends import Backend, Raw
from supremum.arrays.call_forms import Reader, form_of, reader_of
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.fix_trials import retyped
from supremum.arrays.operand_keys import joint_backend, library_of
from supremum.arrays.wrapped import WrappedArray
from supremum.rules import SCOPE, Memory, memory_of


class Prepared(NamedTuple):
    """A function that carries out a call.

    Args:
        function: takes the arrays and the promoted numbers of the call.
        wrap: makes an `Array` of the array of a library that it returns; None if it returns the finished result.
        explain: returns a clearer error for one that the function raised with the given arguments, or the same error;
            None if there are no clearer ones. The function itself catches no errors: JAX records the Python frames
            below each call of a compiled function, so that one more costs more than an addition of NumPy.
    """

    function: Callable[..., Any]
    wrap: Callable[[Raw], Any] | None
    explain: Callable[[Exception, Sequence[Raw]], Exception] | None = None

    def result(self, raws: Sequence[Raw]) -> Any:
        """The result of a call, with its arrays wrapped."""
        try:
            found = self.function(*raws)
        except Exception as error:
            raise self.explained(error, raws)  # noqa: B904 (what was explained is its cause)
        return found if self.wrap is None else self.wrap(found)

    def explained(self, error: Exception, raws: Sequence[Raw]) -> Exception:
        """The error to raise in place of one that the function raised."""
        found = error if self.explain is None else self.explain(error, raws)
        if found is not error:
            found.__cause__ = error
        return found


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
        self.name: str = name
        self.arguments: Callable[..., Any] = arguments
        self.doc: str = doc
        self.backend: Backend | None = None
        self.readers: dict[Hashable, Reader] = {}
        self.call = caller(self)

    def within(self, backend: Backend) -> Self:
        """The function in a namespace, which returns arrays of its library."""
        bound = copy.copy(self)
        bound.backend = backend
        bound.readers = {}
        bound.call = caller(bound)
        return bound

    @abstractmethod
    def examine(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """The result of a call that is new; remember what was prepared for it."""

    def recall(
        self, memory: Memory, args: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[Prepared | None, Sequence[Raw]]:
        """What was prepared for calls that are written like this one, and what it takes."""
        try:
            reader = self.reader(form_of(args, options))
            known, raws = reader.read(args, options, memory.numbers)
        except _NEW:
            return None, ()
        return (memory.by_value if reader.by_value else memory.prepared).get(known), raws

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
        with suppress(*_NEW):
            reader = self.reader(form_of(args, options))
            known, found = reader.read(args, options, memory.numbers)
            if len(found) == len(raws) and all(a is b for a, b in zip(found, raws, strict=True)):
                (memory.by_value if reader.by_value else memory.prepared)[known] = prepared

    def reader(self, form: tuple[Hashable, ...]) -> Reader:
        """What reads calls of a form; the same one for all of them.

        Raises:
            TypeError: if calls of the form have arguments that may change.
        """
        if form not in self.readers and len(self.readers) >= _MOST_FORMS:
            self.readers.clear()
        return self.readers.get(form) or self.readers.setdefault(
            form, reader_of(self, form, promotes=self.promotes, operands=self.operands, by_rank=self.by_rank)
        )

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


Deferred: TypeAlias = "partial[Any]"
"""A call of a function."""


class Forwarding(Function):
    """A function that calls another one. What is prepared for that is remembered for calls of this one, too."""

    @abstractmethod
    def deferred(self, args: Sequence[Any], options: Mapping[str, Any]) -> Deferred:
        """The call that has the result."""

    def examine(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Call the other function.

        Raises:
            PromotionError: if the rules refuse.
        """
        called = self.deferred(args, options)
        result = called()
        function = function_of(called.func)
        if function is not None:
            memory = memory_of(SCOPE.get().rules)
            prepared, raws = function.recall(memory, called.args, called.keywords)
            if prepared is not None:
                self.remember(memory, args, options, raws, prepared)
        return result

    def fail(self, args: Sequence[Any], options: Mapping[str, Any], error: Exception) -> None:
        """As for the other function."""
        called = self.deferred(args, options)
        cast("Function", function_of(called.func)).fail(called.args, called.keywords, error)


def leaves(values: Sequence[Any]) -> Iterator[Any]:
    """Values, with those in lists among them instead of the lists."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from leaves(cast("Sequence[Any]", value))
        else:
            yield value


def caller(
    function: Function, examine: Callable[[Sequence[Any], Mapping[str, Any]], Any] | None = None
) -> Callable[..., Any]:
    """The function that users call.

    Args:
        function: what it is.
        examine: carries out a call that is new; None for the function's own `examine`.
    """
    readers, by_rank, scope_of = function.readers, function.by_rank, SCOPE.get

    def call(*args: Any, **options: Any) -> Any:
        memory = scope_of().memory
        raws: Sequence[Raw]
        try:
            count = len(args)
            is_plain = not (options or by_rank)
            # Calls with one or two arrays alone are read here, and the forms of others written out, in fewer steps.
            if count == 1 and is_plain and isinstance(first := args[0], WrappedArray):
                raws = (first._raw,)  # pyright: ignore[reportPrivateUsage]
                run, wrap, explain = memory.prepared[function, first._key]  # pyright: ignore[reportPrivateUsage]
            elif (
                count == 2
                and is_plain
                and (first := args[0]).__class__ is (second := args[1]).__class__
                and isinstance(first, WrappedArray)
            ):
                raws = first._raw, second._raw  # pyright: ignore[reportPrivateUsage]
                run, wrap, explain = memory.prepared[function, first._key, second._key]  # pyright: ignore[reportPrivateUsage]
            else:
                if not options and count == 1:
                    form = (args[0].__class__,)
                elif not options and count == 2:
                    form = args[0].__class__, args[1].__class__
                elif not options and count == 3:
                    form = args[0].__class__, args[1].__class__, args[2].__class__
                elif count == 1 and len(options) == 1:
                    [name] = options
                    form = args[0].__class__, name
                else:
                    form = form_of(args, options)
                read, by_value = readers[form]
                known, raws = read(args, options, memory.numbers)
                run, wrap, explain = (memory.by_value if by_value else memory.prepared)[known]
        except _NEW:
            return (examine or function.examine)(args, options)
        try:
            result = run(*raws)
        except Exception as error:
            found = Prepared(run, wrap, explain).explained(error, raws)
            function.fail(args, options, found)
            raise found  # noqa: B904 (what was explained is its cause)
        return result if wrap is None else wrap(result)

    update_wrapper(call, function.arguments)
    call.__doc__ = function.doc or function.arguments.__doc__
    call.__name__ = call.__qualname__ = function.name.rpartition(".")[2]
    vars(call)[_FUNCTION] = function
    with suppress(ValueError):  # some functions in C have no signature
        vars(call)["__signature__"] = inspect.signature(function.arguments).replace(return_annotation="Array")
    return call


_FUNCTION = "__supremum_function__"
_MOST_FORMS = 1024


def function_of(call: Callable[..., Any]) -> Function | None:
    """The function that users call as `call`; None for what is not made by `caller`."""
    return getattr(call, _FUNCTION, None)


# A call is new, has arguments that may change or are nested deeply, or an array is new from a tree of JAX.
_NEW = (KeyError, TypeError, RecursionError, AttributeError)
