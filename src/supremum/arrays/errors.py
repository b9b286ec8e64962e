"""What goes wrong with arrays besides promotion.

Exception
└── SupremumError
    ├── LibraryError       (TypeError) operands from two libraries, or from none that is known
    ├── DeviceError        (ValueError) operands on two devices
    ├── RuntimeDtypeError  (TypeError) the rules ask for a dtype or a function that the library does not have
    ├── ComputationError   (RuntimeError) the library does not compute what it is asked for
    ├── NarrowingError     (OverflowError) values that the narrower integer dtype of a decision does not hold
    └── InPlaceError       (ValueError) a result or a value that cannot be stored in an array that keeps its dtype
"""

from __future__ import annotations

import functools
from typing import cast

from supremum.decisions import Decision, Fix
from supremum.errors import SupremumError
from supremum.operations import ASSIGN


class LibraryError(SupremumError, TypeError):
    """Operands from two libraries, which nothing brings together implicitly."""


class DeviceError(SupremumError, ValueError):
    """Operands on two devices."""


class RuntimeDtypeError(SupremumError, TypeError):
    """The rules ask for what the library underneath cannot represent or compute.

    Args:
        what: it.
        remedy: what to do about it, if that is not to cast first.
        decision: what the rules decided; it knows which casts lead to what the library computes.
    """

    def __init__(self, what: str, remedy: str = "", decision: Decision | None = None) -> None:
        super().__init__(what, remedy)
        self.what, self.remedy, self.decision = what, remedy, decision

    @property
    def fix(self) -> Fix | None:
        """Casts that lead to what the library computes, tried on it; None where none do, or something else is to do."""
        decision = None if self.remedy else self.decision
        return None if decision is None else decision.find_fix(decision.operands)

    def __str__(self) -> str:
        remedy = self.remedy or (f"cast first, with {fix}" if (fix := self.fix) is not None else "")
        return f"{self.what}: {remedy}" if remedy else self.what

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self),))


class ComputationError(SupremumError, RuntimeError):
    """The library underneath does not compute what it is asked for: shapes that do not fit, a lack of memory, ...

    It is of the class of the library's error as well, such as `ValueError` or `numpy.linalg.LinAlgError`, and that
    error is its cause.

    Args:
        message: what was asked for, of which operands, and what the library says.
    """

    def __init__(self, message: str) -> None:
        self.args = (message,)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:
        return (computation_error, (type(self).__bases__[-1], *self.args))


def computation_error(kind: type[Exception], message: str) -> ComputationError:
    """A `ComputationError` that is of another class as well, where that is possible."""
    return _of_kind(kind)(message)


@functools.cache
def _of_kind(kind: type[Exception]) -> type[ComputationError]:
    """The class of an error that is of another class too."""
    if issubclass(ComputationError, kind):
        return ComputationError
    try:
        return cast("type[ComputationError]", type(ComputationError.__name__, (ComputationError, kind), {}))
    except TypeError:  # some classes that are written in C go with no other one
        return ComputationError


class NarrowingError(SupremumError, OverflowError):
    """Values that the narrower integer dtype of a decision does not hold."""


class InPlaceError(SupremumError, ValueError):
    """A result or a value that cannot be stored in an array, which keeps its dtype.

    It is no `TypeError`: PyTorch's in-place operators take one for "not mine", and the name on the left would be bound
    to a new array without a word.

    Attributes:
        decision: the refusal.
    """

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        super().__init__()

    @property
    def fix(self) -> Fix | None:
        """Casts after which it can be stored; None where there are none."""
        return self.decision.fix

    def __str__(self) -> str:
        advice = "" if self.decision.operation == ASSIGN.name else "\n  else give the result a name of its own"
        return f"{self.decision}{advice}"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.decision,))
