"""What becomes of missing values in columns of data frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from supremum.decisions import Verdict
from supremum.fix import letter
from supremum.operands import Operand, Operands
from supremum.operations import Operation
from supremum.rules.verdicts import Target

Settle: TypeAlias = Callable[[Operation, Operands, Target | None], Verdict]
"""Returns the verdict of rules on operands whose flags they ignore, or on those that `Columns.seen` leaves."""


@dataclass(frozen=True)
class Columns:
    """What rules say about columns; those of arrays say that arrays have no missing values.

    Args:
        never_missing: the operations whose result is never missing; None for arrays.
    """

    never_missing: frozenset[str] | None = None

    def seen(self, operands: Operands, target: Target | None) -> tuple[Operands, Target | None]:
        """The operands and the target as the rules see them: without flags, which change no dtype."""
        return _without_flags(operands), target and (_without_flags(target[:1])[0], target[1])

    def verdict(self, settle: Settle, operation: Operation, operands: Operands, target: Target | None) -> Verdict:
        """Decide a call with a nullable operand or target, whose result may have missing values, too.

        Args:
            settle: decides without regard to missing values.
            operation: the operation.
            operands: its operands.
            target: the column that the result is written into, which then counts as an operand; None for a new one.
        """
        into = () if target is None else target[:1]
        if any(operand.is_missing_value for operand in operands):
            return Verdict.refuse("only nullable columns of pandas hold pd.NA")
        verdict = settle(operation, *self.seen(operands, target))
        names, verb = _nullable((*operands, *into), len(operands))
        if self.never_missing is None:
            why = f"the arrays of these rules have no missing values, so fill or drop those of {names} first"
            return replace(verdict, reason=(*verdict.reason, why))
        if verdict.result is None:
            return verdict
        if target is None and operation.name in self.never_missing:
            return replace(verdict, reason=(*verdict.reason, f"{operation.name} skips missing values"))
        why = f"the result is nullable, because {names} {verb}"
        return replace(verdict, result=replace(verdict.result, nullable=True), reason=(*verdict.reason, why))


def _without_flags(operands: Operands) -> Operands:
    return tuple(replace(each, nullable=False) if each.nullable else each for each in operands)


def _nullable(operands: tuple[Operand, ...], count: int) -> tuple[str, str]:
    """The names of the operands that are nullable, of which those from `count` on are written into; and their verb."""
    names = [letter(i) if i < count else "the target" for i, each in enumerate(operands) if each.nullable]
    return " and ".join(names), "are" if len(names) > 1 else "is"
