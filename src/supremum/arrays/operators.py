"""Python's operators as methods, each made from a row of the table of operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

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
    """The result of an operator and its key; `NotImplemented` for an operand that is no array.

    Args:
        name: of the operation, `"matmul"` included.
        operands: arrays and Python numbers.

    Raises:
        PromotionError: if the rules refuse.
        LibraryError: for operands from two libraries.
    """
    return product(*operands) if name == "matmul" else ELEMENTWISE_OPERATIONS[name].apply(operands)


class OperatorMethods(Generic[A]):
    """Makes the methods of Python's operators for a class that derives from `WrappedArray`.

    Args:
        wrap: makes an array of that class of an array of a library and its key.
    """

    def __init__(self, wrap: Callable[[Raw, Key], A]) -> None:
        self.wrap = wrap

    def unary(self, name: str) -> Callable[[Any], A]:
        """The method of an operator of one operand."""
        wrap, operation = self.wrap, ELEMENTWISE_OPERATIONS[name]

        def method(self: Any) -> A:
            return wrap(*operation(self))

        return method

    def binary(self, name: str) -> tuple[Callable[[Any, Any], A], Callable[[Any, Any], A]]:
        """The methods of an operator of two operands: for the left one and for the right one."""
        return self.left(name), self._of_any_operands(name, reflected=True)

    def left(self, name: str) -> Callable[[Any, Any], A]:
        """The method of an operator of two operands, for the left one."""
        wrap, operation = self.wrap, ELEMENTWISE_OPERATIONS[name]
        apply, scope_of = self._of_any_operands(name), SCOPE.get

        def with_number(self: Any, other: Any, memory: Memory) -> Prepared:
            # Should another thread set the default meanwhile, nothing is found here: no two rule sets share a key.
            found = memory.prepared[operation, self._key, number_key(scope_of().rules, other)]
            memory.by_number[operation, self._key, other.__class__, other] = found
            return found

        def method(self: Any, other: Any) -> A:
            # What `operation.apply` does, in fewer steps, for two arrays and for an array and a number.
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
            except (KeyError, AttributeError):  # nothing is prepared, or JAX has just put a tree together
                return apply(self, other)
            try:
                if key is not None:
                    return wrap(function(self._raw, raw), key)
                return wrap(*function(self._raw, raw))
            except RuntimeDtypeError as error:  # it is of the first number that this was prepared for
                error.decision = error.decision and retyped(error.decision, (self, other))
                raise
            except Exception as error:
                raise_computation_error(name, self.backend, (self, other), {}, error)
                raise

        return method

    def _of_any_operands(self, name: str, *, reflected: bool = False) -> Callable[[Any, Any], A]:
        """The method of an operator of an array and anything else, which is the left operand if it is reflected."""
        wrap = self.wrap

        def method(self: Any, other: Any) -> A:
            result = apply_operator(name, (other, self) if reflected else (self, other))
            return result if result is NotImplemented else wrap(*result)

        return method

    def matmul(self) -> tuple[Callable[[Any, Any], A], Callable[[Any, Any], A]]:
        """The methods of `@`, for the left operand and for the right one."""
        return self._of_any_operands("matmul"), self._of_any_operands("matmul", reflected=True)

    def divmod(self) -> tuple[Callable[[Any, Any], tuple[A, A]], Callable[[Any, Any], tuple[A, A]]]:
        """The methods of `divmod`, for the left operand and for the right one."""
        quotient, remainder = self.binary("floor_divide"), self.binary("remainder")
        return _pair(quotient[0], remainder[0]), _pair(quotient[1], remainder[1])


def _pair(first: Callable[[Any, Any], A], second: Callable[[Any, Any], A]) -> Callable[[Any, Any], tuple[A, A]]:
    """The method of an operator that gives the results of two."""

    def method(self: Any, other: Any) -> Any:
        found = first(self, other)
        return found if found is NotImplemented else (found, second(self, other))

    return method
