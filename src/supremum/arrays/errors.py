"""What goes wrong with arrays besides promotion.

Exception
└── SupremumError
    ├── LibraryError       (TypeError) operands from two libraries, or from none that is known
    ├── DeviceError        (ValueError) operands on two devices
    ├── RuntimeDtypeError  (TypeError) the rules ask for a dtype or a function that the library does not have
    └── InPlaceError       (TypeError) an assignment that would change the dtype of what is assigned to
"""

from __future__ import annotations

from supremum.errors import SupremumError


class LibraryError(SupremumError, TypeError):
    """Operands from two libraries, which nothing brings together implicitly."""


class DeviceError(SupremumError, ValueError):
    """Operands on two devices."""


class RuntimeDtypeError(SupremumError, TypeError):
    """The rules ask for what the library underneath cannot represent or compute."""


class InPlaceError(SupremumError, TypeError):
    """An assignment in place whose result would have another dtype than what is assigned to."""
