"""The methods of Python's operators, each for a row of the table of operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from supremum.arrays.dispatch import Prepared
from supremum.arrays.functions.elementwise import ELEMENTWISE_OPERATIONS
from supremum.arrays.functions.promoting import PROMOTING_FUNCTIONS
from supremum.arrays.operand_keys import NUMBERS, library_of, number_key
from supremum.arrays.wrapped import new_array
from supremum.rules import SCOPE, Memory


def apply_operator(name: str, operands: Sequence[Any]) -> Any:
    """The result of an operator; `NotImplemented` for an operand that is not an array or a number.

    Args:
        name: of the operation, which may be `"matmul"`.
        operands: arrays and Python numbers.

    Raises:
        PromotionError: if the rules refuse.
        LibraryError: for operands from two libraries.
    """
    if name != "matmul":
        return ELEMENTWISE_OPERATIONS[name].apply(operands)
    return NotImplemented if None in map(library_of, operands) else PROMOTING_FUNCTIONS[name].call(*operands)


def binary(name: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """The methods of an operator with two operands, for the left and for the right operand.

    Args:
        name: of the operation.
    """
    return left(name), _of_any_operands(name, reflected=True)


def left(name: str) -> Callable[[Any, Any], Any]:
    """The method of an operator with two operands, for the left operand, as for `binary`."""
    operation = ELEMENTWISE_OPERATIONS.get(name) or PROMOTING_FUNCTIONS[name]
    apply, scope_of, numbers = _of_any_operands(name), SCOPE.get, NUMBERS if name != "matmul" else ()

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
                function, key = memory.prepared[operation, self._key, other._key]
            elif kind in numbers:
                raw = other
                known = operation, self._key, kind, other
                function, key = memory.by_value.get(known) or with_number(self, other, memory)
            else:
                return apply(self, other)
        except (KeyError, AttributeError):  # nothing is prepared, or the array is new from a tree of JAX
            return apply(self, other)
        try:
            result = function(self._raw, raw)
        except Exception as error:
            operation.fail((self, other), {}, error)
            raise
        return result if key is None else new_array(result, key)

    return method


def _of_any_operands(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """The method of an operator of an array and anything else, which is the left operand if `reflected`."""

    def method(self: Any, other: Any) -> Any:
        return apply_operator(name, (other, self) if reflected else (self, other))

    return method


def pair_of_results(first: Callable[[Any, Any], Any], second: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method of an operator that returns the results of two methods, such as `divmod`."""

    def method(self: Any, other: Any) -> Any:
        found = first(self, other)
        return found if found is NotImplemented else (found, second(self, other))

    return method
