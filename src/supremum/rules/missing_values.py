"""Operands that may have missing values: what rules make of the flag, and what they say about it."""

from __future__ import annotations

from dataclasses import replace

from supremum.decisions import Verdict, letter
from supremum.operands import Operand, Operands
from supremum.operations import Operation


def without_flags(operands: Operands) -> Operands:
    """The operands without their flags, for rules whose answers do not depend on missing values."""
    return tuple(replace(each, nullable=False) if each.nullable else each for each in operands)


def filled_first(verdict: Verdict, operands: Operands, into: Operand | None) -> Verdict:
    """The same verdict, with the remark that arrays have no missing values."""
    names, _ = _nullable(operands if into is None else (*operands, into), len(operands))
    why = f"the arrays of these rules have no missing values, so fill or drop those of {names} first"
    return replace(verdict, reason=(*verdict.reason, why))


def carried(
    verdict: Verdict, operation: Operation, operands: Operands, into: Operand | None, never_missing: frozenset[str]
) -> Verdict:
    """The verdict on columns, whose result is nullable if an operand is.

    Args:
        verdict: the verdict on the dtypes.
        operation: the operation.
        operands: its operands; they or the column written into are nullable.
        into: the column that the result is written into, which then counts as an operand; None for a new one.
        never_missing: the operations whose result is not missing even if every value is.
    """
    if verdict.result is None:
        return verdict
    if into is None and operation.name in never_missing:
        return replace(verdict, reason=(*verdict.reason, f"{operation.name} skips missing values"))
    names, verb = _nullable(operands if into is None else (*operands, into), len(operands))
    why = f"the result is nullable, because {names} {verb}"
    return replace(verdict, result=replace(verdict.result, nullable=True), reason=(*verdict.reason, why))


def _nullable(operands: Operands, count: int) -> tuple[str, str]:
    """The names of the operands that are nullable, of which those from `count` on are written into; and their verb."""
    names = [letter(i) if i < count else "the target" for i, each in enumerate(operands) if each.nullable]
    return " and ".join(names), "are" if len(names) > 1 else "is"
