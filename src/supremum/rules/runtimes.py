"""The library that carries out a fixed call, as the search for fixes sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from supremum.decisions import Fix, Verdict
from supremum.operands import Operand
from supremum.operations import Operation


class Runtime(Protocol):
    """The library that would carry out a fixed call, tried on arrays of its own and never on those of the user."""

    def holds(self, operand: Operand) -> bool:
        """Whether this runtime is known to have the array, so that a cast of it can be tried."""
        ...

    def tried(self, operation: Operation, operands: Sequence[Operand], fix: Fix, verdict: Verdict) -> Fix | None:
        """The fix as it has to be typed, if the casts, and then the operation, work; else None.

        Args:
            operation: its row.
            operands: as they are before the casts.
            fix: the casts.
            verdict: what the rules say of the operands after the casts.
        """
        ...


class Everything:
    """The runtime that is taken for granted where only dtypes are known: it has every dtype and every function."""

    def holds(self, operand: Operand) -> bool:  # noqa: ARG002 (a `Runtime`)
        """Nothing is known of arrays."""
        return False

    def tried(self, operation: Operation, operands: Sequence[Operand], fix: Fix, verdict: Verdict) -> Fix:  # noqa: ARG002
        """It works."""
        return fix


EVERYTHING = Everything()
