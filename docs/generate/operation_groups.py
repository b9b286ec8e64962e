"""Groups of binary operations with equal answers, and how much these differ from `result_type`."""

from __future__ import annotations

from dataclasses import dataclass

from generate.changes import answer_of
from supremum.analysis.tables import STANDARD_TYPES
from supremum.operands import as_operand
from supremum.operations import OPERATIONS, TABLED, Operation
from supremum.rules import get_rules


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that give the same answer for every pair.

    Args:
        operations: their names.
        refused: number of pairs that they refuse and `result_type` accepts.
        accepted: number of pairs that they accept and `result_type` refuses.
        otherwise: number of pairs that both accept with different dtypes.
        example: a pair with different dtypes, the answer of the operations and that of `result_type`; or None.
    """

    operations: tuple[str, ...]
    refused: int
    accepted: int
    otherwise: int
    example: tuple[str, str, str, str] | None


def operation_groups(rules: str) -> list[Group]:
    """Return the groups of a rule set over the standard types, nearest to `result_type` first.

    >>> [group.operations[0] for group in operation_groups("array-api")][:2]
    ['where', 'add']
    """
    operands = {name: as_operand(name) for name in STANDARD_TYPES}
    decide = get_rules(rules).decide
    pairs = [(a, b) for a in STANDARD_TYPES for b in STANDARD_TYPES]

    def answers(operation: Operation) -> tuple[str, ...]:
        return tuple(answer_of(decide(operation, (operands[a], operands[b]))) for a, b in pairs)

    common = answers(OPERATIONS["result_type"])
    found: dict[tuple[str, ...], list[str]] = {}
    for row in TABLED.values():
        found.setdefault(answers(row), []).append(row.name)
    groups = [_group(tuple(names), given, common, pairs) for given, names in found.items()]
    return sorted(groups, key=lambda group: (group.refused + group.accepted + group.otherwise, group.operations))


def _group(
    names: tuple[str, ...],
    given: tuple[str, ...],
    common: tuple[str, ...],
    pairs: list[tuple[str, str]],
) -> Group:
    both = list(zip(pairs, given, common, strict=True))
    otherwise = [(*pair, ours, met) for pair, ours, met in both if "refused" not in (ours, met) and ours != met]
    return Group(
        names,
        sum(ours == "refused" != met for _, ours, met in both),
        sum(met == "refused" != ours for _, ours, met in both),
        len(otherwise),
        otherwise[0] if otherwise else None,
    )
