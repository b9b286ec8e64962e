"""The methods of Python's operators, each for a row of the table of operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.backends import Key, Raw
from supremum.arrays.dispatch import ELEMENTWISE_OPERATIONS, Prepared
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.fix_trials import retyped
from supremum.arrays.functions.matmul import product
from supremum.arrays.operand_keys import NUMBERS, number_key
from supremum.rules import SCOPE, Memory

A = TypeVar("A")


def apply_operator(name: str, operands: Sequence[Any]) -> Any:
    """The result of an operator and its key; `NotImplemented` for an operand that is not an array or a number.

    Args:
        name: of the operation, which may be `"matmul"`.
        operands: arrays and Python numbers.

    Raises:
        PromotionError: if the rules refuse.
        LibraryError: for operands from two libraries.
    """
    return product(*operands) if name == "matmul" else ELEMENTWISE_OPERATIONS[name].apply(operands)


def unary(wrap: Callable[[Raw, Key], A], name: str) -> Callable[[Any], A]:
    """The method of an operator with one operand.

    Args:
        wrap: makes a result from an array of a library and its key.
        name: of the operation.
    """
    operation = ELEMENTWISE_OPERATIONS[name]

    def method(self: Any) -> A:
        return wrap(*operation(self))

    return method


def binary(wrap: Callable[[Raw, Key], A], name: str) -> tuple[Callable[[Any, Any], A], Callable[[Any, Any], A]]:
    """The methods of an operator with two operands, for the left and for the right operand, as for `unary`."""
    return (_of_any_operands(wrap, name) if name == "matmul" else left(wrap, name)), _of_any_operands(wrap, name, True)


def left(wrap: Callable[[Raw, Key], A], name: str) -> Callable[[Any, Any], A]:
    """The method of an operator with two operands, for the left operand, as for `unary`."""
    operation, apply, scope_of = ELEMENTWISE_OPERATIONS[name], _of_any_operands(wrap, name), SCOPE.get

    def with_number(self: Any, other: Any, memory: Memory) -> Prepared:
        # If another thread changes the default here, this finds nothing, because rule sets do not share keys.
        found = memory.prepared[operation, self._key, number_key(scope_of().rules, other)]
        memory.by_number[operation, self._key, other.__class__, other] = found
        return found

    def method(self: Any, other: Any) -> A:
        # The same as `operation.apply`, in fewer steps, for two arrays and for an array and a number.
        kind = other.__class__
        memory = scope_of().memory
        try:
            if kind is self.__class__:
                raw = other._raw
                function, key = memory.prepared[operation, self._key, other._key]
            elif kind in NUMBERS:
                raw = other
                known = operation, self._key, kind, other
                function, key = memory.by_number.get(known) or with_number(self, other, memory)
            else:
                return apply(self, other)
        except (KeyError, AttributeError):  # nothing is prepared, or the array is new from a tree of JAX
            return apply(self, other)
        try:
            if key is not None:
                return wrap(function(self._raw, raw), key)
            return wrap(*function(self._raw, raw))
        except RuntimeDtypeError as error:  # its decision has the number of the first call
            error.decision = error.decision and retyped(error.decision, (self, other))
            raise
        except Exception as error:
            raise_computation_error(name, self.backend, (self, other), {}, error)
            raise

    return method


def _of_any_operands(wrap: Callable[[Raw, Key], A], name: str, reflected: bool = False) -> Callable[[Any, Any], A]:
    """The method of an operator of an array and anything else, which is the left operand if `reflected`."""

    def method(self: Any, other: Any) -> A:
        result = apply_operator(name, (other, self) if reflected else (self, other))
        return result if result is NotImplemented else wrap(*result)

    return method


def pair_of_results(first: Callable[[Any, Any], A], second: Callable[[Any, Any], A]) -> Callable[..., tuple[A, A]]:
    """The method of an operator that returns the results of two methods, such as `divmod`."""

    def method(self: Any, other: Any) -> Any:
        found = first(self, other)
        return found if found is NotImplemented else (found, second(self, other))

    return method
