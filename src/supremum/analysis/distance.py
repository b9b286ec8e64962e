"""How far rule sets are apart: the numbers of cells in which each two of them differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from supremum.analysis.clustering import alike_together
from supremum.analysis.comparison import DIFFERENCES, difference, refuse_namesakes
from supremum.analysis.tables import RuleTable, rule_table
from supremum.argument_checks import iterable
from supremum.errors import ArgumentError, UnknownNameError
from supremum.render import Cell, Table, step
from supremum.rules import HOMES, RuleSet, get_rules


@dataclass(frozen=True, slots=True)
class Distances:
    """In how many cells rule sets differ, each from each.

    Args:
        operation: name of the operation.
        types: the types whose ordered pairs are the cells.
        names: of the rule sets; those that are alike stand together.
        differing: how many cells differ in each way, for every ordered pair of names.
    """

    operation: str
    types: tuple[str, ...]
    names: tuple[str, ...]
    differing: dict[tuple[str, str], dict[str, int]]

    @property
    def cells(self) -> int:
        """How many cells each table has."""
        return len(self.types) ** 2

    def count(self, left: str, right: str) -> int:
        """In how many cells two rule sets differ.

        Args:
            left: name of the one.
            right: name of the other.

        Raises:
            UnknownNameError: for a name that is not among these.
        """
        return sum(self.counts(left, right).values())

    def counts(self, left: str, right: str) -> dict[str, int]:
        """How many cells differ in each way, the most frequent first, as keys of `DIFFERENCES`.

        Args:
            left: name of the one.
            right: name of the other, which is the one that is `"wider"`, or has `"refused"`.

        Raises:
            UnknownNameError: for a name that is not among these.
        """
        for name in (left, right):
            if name not in self.names:
                raise UnknownNameError("rule set among these", name, self.names)
        return self.differing.get((left, right), {})

    def data(self) -> dict[str, Any]:
        """The distances as plain data for JSON."""
        return {
            "operation": self.operation,
            "types": list(self.types),
            "cells": self.cells,
            "rules": list(self.names),
            "differing": {a: {b: self.count(a, b) for b in self.names} for a in self.names},
            "counts": {a: {b: self.counts(a, b) for b in self.names} for a in self.names},
        }

    def drawing(self) -> Table:
        """The distances as a table for `supremum.render`, whose cells are coloured by size."""
        largest = max(self.count(a, b) for a in self.names for b in self.names)

        def cell(a: str, b: str) -> Cell:
            count = self.count(a, b)
            return Cell(str(count), step(count, largest), self._hint(a, b))

        rows = tuple((a, tuple(cell(a, b) for b in self.names)) for a in self.names)
        title = f"How far rule sets are apart: how many of {self.cells} cells differ, {self.operation}"
        return Table(title, self.names, rows, upright=True)

    def _hint(self, left: str, right: str) -> str:
        if left == right:
            return f"{left} is itself"
        head = f"{self.count(left, right)} of {self.cells} cells differ between {left} and {right}"
        ways = (
            f"{DIFFERENCES[how].symbol} {count} {DIFFERENCES[how].meaning.format(left=left, right=right)}"
            for how, count in self.counts(left, right).items()
        )
        return "\n".join((head, *ways))


def distances(
    operation: str | None = None,
    types: str | Sequence[str] = "standard",
    rules: Sequence[str | RuleSet] | None = None,
) -> Distances:
    """Count the cells in which rule sets differ, each from each.

    Args:
        operation: name of the operation; None where no particular one is meant.
        types: `"standard"`, `"all"`, or names of formats and weak kinds, as a list or separated by commas.
        rules: rule sets or their names; None for every one of Supremum's. `"jax"` stands for one of the others, and is
            counted as that one.

    Raises:
        UnknownNameError: for an unknown name, or an operation that does not take two operands.
        ArgumentError: for two rule sets of one name, and for none at all.

    >>> found = distances(types="int32,float16,float32", rules=["jax-x64", "torch", "numpy"])
    >>> found.names, found.count("torch", "numpy"), found.counts("torch", "numpy")
    (('jax-x64', 'torch', 'numpy'), 4, {'wider': 4})
    """
    rule_sets = [get_rules(each) for each in (HOMES if rules is None else iterable("rules", rules, "rule sets"))]
    if not rule_sets:
        raise ArgumentError("there is nothing to compare without rule sets: give some, or rules=None for all of them")
    refuse_namesakes(*rule_sets)
    tables = {each.name: rule_table(each, operation, types) for each in rule_sets}
    differing: dict[tuple[str, str], dict[str, int]] = {}
    for a, b in combinations(tables, 2):
        counts = _counts(tables[a], tables[b])
        differing[a, b] = counts
        differing[b, a] = {DIFFERENCES[how].mirrored: count for how, count in counts.items()}
    names = alike_together(tuple(tables), lambda a, b: sum(differing[a, b].values()))
    one = tables[names[0]]
    return Distances(one.operation, one.types, names, differing)


def _counts(left: RuleTable, right: RuleTable) -> dict[str, int]:
    ways = (difference(decision, right.decisions[pair]) for pair, decision in left.decisions.items())
    return dict(Counter(filter(None, ways)).most_common())
