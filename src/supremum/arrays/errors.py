"""What goes wrong with arrays besides promotion.

Exception
└── SupremumError
    ├── LibraryError       (TypeError) operands from two libraries, or from none that is known
    ├── DeviceError        (ValueError) operands on two devices
    ├── RuntimeDtypeError  (TypeError) the rules ask for a dtype or a function that the library does not have
    ├── NarrowingError     (OverflowError) values that the narrower integer dtype of a decision does not hold
    └── InPlaceError       (ValueError) an assignment that would change the dtype of what is assigned to
"""

from __future__ import annotations

from supremum.errors import SupremumError


class LibraryError(SupremumError, TypeError):
    """Operands from two libraries, which nothing brings together implicitly."""


class DeviceError(SupremumError, ValueError):
    """Operands on two devices."""


class RuntimeDtypeError(SupremumError, TypeError):
    """The rules ask for what the library underneath cannot represent or compute."""


class NarrowingError(SupremumError, OverflowError):
    """Values that the narrower integer dtype of a decision does not hold."""


class InPlaceError(SupremumError, ValueError):
    """An assignment in place whose result would have another dtype than what is assigned to.

    It is no `TypeError`: PyTorch's in-place operators take one for "not mine", and the name on the left would be bound
    to a new array without a word.
    """
