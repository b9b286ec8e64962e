"""The methods of Python's operators, each for a row of the table of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supremum.arrays.decided import Decided
from supremum.arrays.dispatch import Prepared
from supremum.arrays.functions.elementwise import ELEMENTWISE_OPERATIONS
from supremum.arrays.functions.promoting import PROMOTING_FUNCTIONS
from supremum.arrays.operand_keys import NUMBERS, library_of, number_key
from supremum.rules import SCOPE, Memory


def binary(name: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """The methods of an operator with two operands, for the left and for the right operand.

    Args:
        name: of the operation.
    """
    operator = _operator(name)
    return left(name), lambda self, other: operator(other, self)


def left(name: str) -> Callable[[Any, Any], Any]:
    """The method of an operator with two operands, for the left operand, as for `binary`."""
    operation, operator = _operation(name), _operator(name)
    scope_of, numbers = SCOPE.get, NUMBERS if name != "matmul" else ()

    def with_number(self: Any, other: Any, memory: Memory) -> Prepared:
        # If another thread changes the default here, this finds nothing, because rule sets do not share keys.
        found = memory.prepared[operation, self._key, number_key(scope_of().rules, other)]
        memory.by_value[operation, self._key, other.__class__, other] = found
        return found

    def method(self: Any, other: Any) -> Any:
        # The same as the operation's `call`, in fewer steps, for two arrays and for an array and a number.
        kind = other.__class__
        memory = scope_of().memory
        try:
            if kind is self.__class__:
                raw = other._raw
                function, wrap, explain = memory.prepared[operation, self._key, other._key]
            elif kind in numbers:
                raw = other
                known = operation, self._key, kind, other
                function, wrap, explain = memory.by_value.get(known) or with_number(self, other, memory)
            else:
                return operator(self, other)
        except (KeyError, AttributeError):  # nothing is prepared, or the array is new from a tree of JAX
            return operator(self, other)
        try:
            result = function(self._raw, raw)
        except Exception as error:
            found = Prepared(function, wrap, explain).explained(error, (self._raw, raw))
            operation.fail((self, other), {}, found)
            raise found  # noqa: B904 (what was explained is its cause)
        return result if wrap is None else wrap(result)

    return method


def _operation(name: str) -> Decided:
    return ELEMENTWISE_OPERATIONS.get(name) or PROMOTING_FUNCTIONS[name]


def _operator(name: str) -> Callable[[Any, Any], Any]:
    """An operator on any operands; `@` takes no numbers."""
    operator = _operation(name).operator
    if name != "matmul":
        return operator
    return lambda a, b: NotImplemented if None in (library_of(a), library_of(b)) else operator(a, b)


def pair_of_results(first: Callable[[Any, Any], Any], second: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method of an operator that returns the results of two methods, such as `divmod`."""

    def method(self: Any, other: Any) -> Any:
        found = first(self, other)
        return found if found is NotImplemented else (found, second(self, other))

    return method
