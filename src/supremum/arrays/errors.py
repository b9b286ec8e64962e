"""What goes wrong with arrays besides promotion.

Exception
└── SupremumError
    ├── LibraryError       (TypeError) operands from two libraries, or from none that is known
    ├── DeviceError        (ValueError) operands on two devices
    ├── RuntimeDtypeError  (TypeError) the rules ask for a dtype or a function that the library does not have
    ├── NarrowingError     (OverflowError) values that the narrower integer dtype of a decision does not hold
    └── InPlaceError       (ValueError) a result or a value that cannot be stored in an array that keeps its dtype
"""

from __future__ import annotations

from supremum.decisions import Decision, Fix
from supremum.errors import SupremumError
from supremum.operations import ASSIGN


class LibraryError(SupremumError, TypeError):
    """Operands from two libraries, which nothing brings together implicitly."""


class DeviceError(SupremumError, ValueError):
    """Operands on two devices."""


class RuntimeDtypeError(SupremumError, TypeError):
    """The rules ask for what the library underneath cannot represent or compute."""


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
