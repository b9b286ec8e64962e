"""Python's operators as methods, each made from a row of the table of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from supremum.arrays.assignment import assigned, refused_in_place
from supremum.arrays.backend_errors import raise_as_ours
from supremum.arrays.dispatch import NUMBERS, Applied, Prepared, number_key
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.fix_trials import retyped
from supremum.operations import ELEMENTWISE
from supremum.rules.assignment import Storing
from supremum.rules.scope import SCOPE, Scope
from supremum.rules.shared_cache import Memory

if TYPE_CHECKING:
    from supremum.arrays.array import Array

APPLIED: dict[str, Applied] = {name: Applied(row) for name, row in ELEMENTWISE.items()}
"""Every operation that computes element by element, by name; operators and `supremum.ops` share what is prepared."""


def _unary(name: str) -> Callable[[Any], Array]:
    """The method of an operator of one operand."""
    applied = APPLIED[name]

    def method(self: Any) -> Array:
        return applied(self)

    return method


def _binary(name: str) -> Callable[[Any, Any], Array]:
    """The method of an operator of two operands, for the left one."""
    applied = APPLIED[name]
    scope_of = SCOPE.get

    def with_number(self: Any, other: Any, scope: Scope, memory: Memory) -> Prepared:
        # Should another thread set the default meanwhile, nothing is found here: no two rule sets share a key.
        found = memory.prepared[applied, self._key, number_key(scope.rules, other)]
        memory.by_number[applied, self._key, other.__class__, other] = found
        return found

    def method(self: Any, other: Any) -> Array:
        # What `applied.apply` does, in fewer steps, for two arrays and for an array and a number.
        kind = other.__class__
        scope = scope_of()
        memory = scope.memory
        try:
            if kind is self.__class__:
                raw = other._raw
                function, key = memory.prepared[applied, self._key, other._key]
            elif kind in NUMBERS:
                raw = other
                known = applied, self._key, kind, other
                function, key = memory.by_number.get(known) or with_number(self, other, scope, memory)
            else:
                return applied.apply((self, other))
        except (KeyError, AttributeError):  # nothing is prepared, or JAX has just put a tree together
            return applied.apply((self, other))
        try:
            if key is None:
                return function(self._raw, raw)
            made = self._made
            array = made.__new__(made)
            array._raw = function(self._raw, raw)
        except RuntimeDtypeError as error:  # it is of the first number that this was prepared for
            error.decision = error.decision and retyped(error.decision, (self, other))
            raise
        except Exception as error:
            raise_as_ours(name, self.backend, (self, other), {}, error)
            raise
        array._key = key
        return array

    return method


def _reflected(name: str) -> Callable[[Any, Any], Array]:
    """The method of an operator of two operands, for the right one."""
    applied = APPLIED[name]

    def method(self: Any, other: Any) -> Array:
        return applied.apply((other, self))

    return method


def _in_place(name: str) -> Callable[[Any, Any], Array]:
    """The method of an operator that assigns."""

    def method(self: Any, other: Any) -> Array:
        return self._assign(name, other)

    return method


def _matmul(self: Any, other: Any) -> Array:
    """`@`; its function is the namespace's."""
    from supremum.arrays.functions.matmul import product  # it imports this module

    return product(self, other)


def _reflected_matmul(self: Any, other: Any) -> Array:
    from supremum.arrays.functions.matmul import product  # it imports this module

    return product(other, self)


def _matmul_in_place(self: Any, other: Any) -> Array:
    with refused_in_place(self, "matmul", (self, other), self._storing):
        result = _matmul(self, other)
    return NotImplemented if result is NotImplemented else self._put(result, "matmul", other)


def _both(first: Callable[[Any, Any], Any], second: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method of an operator that gives the results of two."""

    def method(self: Any, other: Any) -> Any:
        found = first(self, other)
        return found if found is NotImplemented else (found, second(self, other))

    return method


class Operators:
    """Python's operators under the rules in force; the base of `Array`."""

    __slots__ = ()
    _made: ClassVar[Any] = None
    """`Array`: what operators give, of subclasses too."""
    _storing: ClassVar[Storing | None] = None
    """What operators that assign store; None for what the rules in force store."""

    def __init_subclass__(cls) -> None:
        Operators._made = Operators._made or cls  # `Array` is the first

    def _assign(self: Any, name: str, other: Any) -> Any:
        """What an operator that assigns does: the result in the place of this array."""
        with refused_in_place(self, name, (self, other), self._storing):
            result = APPLIED[name].apply((self, other))
        return NotImplemented if result is NotImplemented else self._put(result, name, other)

    def _put(self: Any, result: Array, name: str, other: Any) -> Any:
        """The result of an operator in the place of this array."""
        return assigned(self, result, name, (self, other))

    real, imag = property(_unary("real")), property(_unary("imag"))

    __pos__, __neg__, __abs__ = _unary("positive"), _unary("negative"), _unary("abs")
    __invert__ = _unary("bitwise_invert")

    __add__, __radd__, __iadd__ = _binary("add"), _reflected("add"), _in_place("add")
    __sub__, __rsub__, __isub__ = _binary("subtract"), _reflected("subtract"), _in_place("subtract")
    __mul__, __rmul__, __imul__ = _binary("multiply"), _reflected("multiply"), _in_place("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _binary("divide"), _reflected("divide"), _in_place("divide")
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _reflected("floor_divide")
    __ifloordiv__ = _in_place("floor_divide")
    __divmod__, __rdivmod__ = (
        _both(_binary("floor_divide"), _binary("remainder")),
        _both(_reflected("floor_divide"), _reflected("remainder")),
    )
    __mod__, __rmod__, __imod__ = _binary("remainder"), _reflected("remainder"), _in_place("remainder")
    __pow__, __rpow__, __ipow__ = _binary("pow"), _reflected("pow"), _in_place("pow")

    __matmul__, __rmatmul__, __imatmul__ = _matmul, _reflected_matmul, _matmul_in_place

    __and__, __rand__, __iand__ = _binary("bitwise_and"), _reflected("bitwise_and"), _in_place("bitwise_and")
    __or__, __ror__, __ior__ = _binary("bitwise_or"), _reflected("bitwise_or"), _in_place("bitwise_or")
    __xor__, __rxor__, __ixor__ = _binary("bitwise_xor"), _reflected("bitwise_xor"), _in_place("bitwise_xor")
    __lshift__, __rlshift__ = _binary("bitwise_left_shift"), _reflected("bitwise_left_shift")
    __ilshift__ = _in_place("bitwise_left_shift")
    __rshift__, __rrshift__ = _binary("bitwise_right_shift"), _reflected("bitwise_right_shift")
    __irshift__ = _in_place("bitwise_right_shift")

    __eq__, __ne__ = _binary("equal"), _binary("not_equal")  # pyright: ignore[reportAssignmentType] (elementwise)
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    # What can be written to is no key; JAX's arrays, which cannot, are none either.
    __hash__ = None  # pyright: ignore[reportAssignmentType]
