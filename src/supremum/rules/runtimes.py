"""The library that carries out a fixed call, as the search for a fix uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from supremum.decisions import Fix, Verdict
from supremum.operands import Operand
from supremum.operations import Operation


class Runtime(Protocol):
    """The library that carries out a fixed call; it tries casts on test arrays, never on those of the user."""

    def holds(self, operand: Operand) -> bool:
        """Whether the array is known to belong to this runtime, so that it can try a cast of it."""
        ...

    def tried(self, operation: Operation, operands: Sequence[Operand], fix: Fix, verdict: Verdict) -> Fix | None:
        """The fix as users must type it; None if a cast or the operation after it does not work.

        Args:
            operation: its row.
            operands: the operands before the casts.
            fix: the casts.
            verdict: the verdict of the rules on the operands after the casts.
        """
        ...


class Everything:
    """The runtime assumed when only dtypes are known, which supports every dtype and every function."""

    def holds(self, operand: Operand) -> bool:  # noqa: ARG002 (a `Runtime`)
        """Always false, because this runtime has no arrays."""
        return False

    def tried(self, operation: Operation, operands: Sequence[Operand], fix: Fix, verdict: Verdict) -> Fix:  # noqa: ARG002
        """The fix itself, without a trial."""
        return fix


EVERYTHING = Everything()
