"""The distances between rule sets: the number of cells in which each pair of them differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from supremum.analysis.comparison import DIFFERENCES, difference, refuse_namesakes
from supremum.analysis.tables import TypeNames, rule_table
from supremum.argument_checks import iterable
from supremum.errors import ArgumentError, UnknownNameError
from supremum.render import Cell, Table, step
from supremum.rules import HOMES, RulesLike, get_rules


@dataclass(frozen=True, slots=True)
class Distances:
    """The number of cells in which rule sets differ, for each pair of them.

    Args:
        operation: name of the operation.
        types: the types; their ordered pairs are the cells.
        names: the names of the rule sets, similar ones next to each other.
        differing: for every ordered pair of names, the number of cells that differ in each way.

    >>> found = distances(
    ...     types="int32,float16,float32", rules=["jax-x64", "torch", "numpy"]
    ... )
    >>> found.cells, found.count("jax-x64", "torch"), found.counts("jax-x64", "numpy")
    (9, 0, {'wider': 4})
    """

    operation: str
    types: tuple[str, ...]
    names: tuple[str, ...]
    differing: dict[tuple[str, str], dict[str, int]]

    @property
    def cells(self) -> int:
        """The number of cells in each table."""
        return len(self.types) ** 2

    def count(self, left: str, right: str) -> int:
        """The number of cells in which two rule sets differ.

        Args:
            left: name of a rule set.
            right: name of the other.

        Raises:
            UnknownNameError: for a name that is not among these.
        """
        return sum(self.counts(left, right).values())

    def counts(self, left: str, right: str) -> dict[str, int]:
        """The number of cells that differ in each way, the most frequent first, as keys of `DIFFERENCES`.

        Args:
            left: name of a rule set.
            right: name of the other; it is the one that is `"wider"` or has `"refused"`.

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
        """The distances as a table for `supremum.render`, with cells coloured by size."""
        largest = max(self.count(a, b) for a in self.names for b in self.names)

        def cell(a: str, b: str) -> Cell:
            count = self.count(a, b)
            return Cell(str(count), step(count, largest), self._hint(a, b))

        rows = tuple((a, tuple(cell(a, b) for b in self.names)) for a in self.names)
        title = f"Distances between rule sets: how many of {self.cells} cells differ, {self.operation}"
        return Table(title, self.names, rows, upright=True)

    def _hint(self, left: str, right: str) -> str:
        if left == right:
            return f"{left} and {left} are the same"
        lines = [f"{self.count(left, right)} of {self.cells} cells differ between {left} and {right}"]
        for how, count in self.counts(left, right).items():
            lines.append(f"{DIFFERENCES[how].symbol} {count} {DIFFERENCES[how].meaning.format(left=left, right=right)}")
        return "\n".join(lines)


def distances(
    operation: str | None = None, types: TypeNames = "standard", rules: Sequence[RulesLike] | None = None
) -> Distances:
    """Count the cells in which rule sets differ, for each pair of them.

    Args:
        operation: name of the operation; None for no particular one.
        types: `"standard"`, `"all"`, or names of formats and weak kinds, as a list or separated by commas.
        rules: rule sets or their names; None for all of Supremum's. `"jax"` stands for one of the others and counts as
            that one.

    Raises:
        UnknownNameError: for an unknown name, or an operation that does not take two operands.
        ArgumentError: if two different rule sets have the same name, or there are no rule sets.

    >>> found = distances(
    ...     types="int32,float16,float32", rules=["jax-x64", "torch", "numpy"]
    ... )
    >>> found.names, found.count("torch", "numpy"), found.counts("torch", "numpy")
    (('jax-x64', 'torch', 'numpy'), 4, {'wider': 4})
    """
    rule_sets = [get_rules(each) for each in (HOMES if rules is None else iterable("rules", rules, "rule sets"))]
    if not rule_sets:
        raise ArgumentError("rules must not be empty; give rule sets or their names, or rules=None for all of them.")
    refuse_namesakes(*rule_sets)
    tables = {each.name: rule_table(each, operation, types) for each in rule_sets}
    differing: dict[tuple[str, str], dict[str, int]] = {}
    for a, b in combinations(tables, 2):
        ways = (difference(decision, tables[b].decisions[pair]) for pair, decision in tables[a].decisions.items())
        differing[a, b] = dict(Counter(filter(None, ways)).most_common())
        differing[b, a] = {DIFFERENCES[how].mirrored: count for how, count in differing[a, b].items()}
    names = alike_together(tuple(tables), lambda a, b: sum(differing[a, b].values()))
    one = tables[names[0]]
    return Distances(one.operation, one.types, names, differing)


def alike_together(names: Sequence[str], distance: Callable[[str, str], float]) -> tuple[str, ...]:
    """Sort names by hierarchical clustering.

    The two nearest groups are joined until one is left. The distance of two groups is the mean distance of their
    members (Sokal and Michener 1958, "A statistical method for evaluating systematic relationships"). Each joined group
    may be reversed, so that the nearest ends become neighbours. The first candidate wins a tie.

    Args:
        names: the names to order, at least one.
        distance: the distance of two names; must be symmetric.

    >>> alike_together(["1", "9", "2", "8"], lambda a, b: abs(int(a) - int(b)))
    ('1', '2', '8', '9')
    """
    groups: list[tuple[str, ...]] = [(name,) for name in names]
    while len(groups) > 1:
        one, other = min(combinations(groups, 2), key=lambda pair: _average(*pair, distance))
        ways = product((one, one[::-1]), (other, other[::-1]))
        first, second = min(ways, key=lambda pair: distance(pair[0][-1], pair[1][0]))
        groups[groups.index(one)] = first + second
        groups.remove(other)
    return groups[0]


def _average(one: tuple[str, ...], other: tuple[str, ...], distance: Callable[[str, str], float]) -> float:
    return sum(distance(a, b) for a, b in product(one, other)) / (len(one) * len(other))
