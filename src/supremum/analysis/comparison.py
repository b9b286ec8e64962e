"""Two rule sets side by side: the cells in which they differ, and the triples they group differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from supremum.analysis.tables import RuleTable, is_number, rule_table, type_names
from supremum.argument_checks import flag, iterable
from supremum.decisions import Decision, letter
from supremum.errors import ArgumentError, shown
from supremum.formats import CATEGORIES, as_format
from supremum.lattice import counterexamples
from supremum.operands import as_operand
from supremum.render import Mark, Note, SideBySide, Table
from supremum.rules import RuleSet, get_rules, weak_defaults

WIDEST: dict[str, str] = weak_defaults("int64", "float64", "complex128")
"""The 64-bit dtype of each weak kind, which is how NumPy before version 2 saw Python numbers."""


class Difference(NamedTuple):
    """A way in which a decision differs from another one.

    Args:
        symbol: the sign it is marked with.
        meaning: what it says, with `{left}` and `{right}` for the names of the rule sets.
        mirrored: what it is the other way round.
    """

    symbol: str
    meaning: str
    mirrored: str


DIFFERENCES: dict[str, Difference] = {
    "wider": Difference("▲", "wider in {right}", "narrower"),
    "narrower": Difference("▼", "narrower in {right}", "wider"),
    "refused": Difference("✕", "refused by {right}", "accepted"),
    "accepted": Difference("○", "refused by {left}", "refused"),
    "kind": Difference("◆", "another kind of number", "kind"),
    "value": Difference("≠", "a Python number becomes another one in {right}", "value"),
    "other": Difference("≈", "another format of the same width", "other"),
}
"""Every way in which decisions differ."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two tables over the same types.

    Args:
        left: the one.
        right: the other.
        differing: how the right one differs from the left, as a key of `DIFFERENCES`, for the pairs where dtype,
            refusal or the value of a Python number do.
    """

    left: RuleTable
    right: RuleTable
    differing: dict[tuple[str, str], str]

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs differ in each way, the most frequent first."""
        return dict(Counter(self.differing.values()).most_common())

    @property
    def summary(self) -> str:
        """How many cells differ, in words."""
        return f"{len(self.differing)} of {len(self.left.decisions)} cells differ"

    def meaning(self, how: str) -> str:
        """What a way of differing says of these two, such as `"wider in numpy"`."""
        return DIFFERENCES[how].meaning.format(left=self.left.rules, right=self.right.rules)

    def drawing(self, *, short: bool = False) -> Table:
        """The left table for `supremum.render`, with the cells marked that differ.

        Args:
            short: whether to write types in the codes of spec/jax-type-promotion.rst.
        """
        note = f", {self.summary} from {self.right.rules}"
        return self._drawn(self.left, short=short, note=note)

    def side_by_side(self, triples: Groupings | None = None, *, shown: int = 5) -> SideBySide:
        """Both tables for `supremum.render.side_by_side`, in short codes, with the cells marked that differ.

        Args:
            triples: which triples each of the two groups differently, to be listed below.
            shown: how many of the triples to list for each.

        >>> drawn = compare("jax-x64", "numpy", types="int32,float32").side_by_side()
        >>> drawn.title, {mark.meaning: count for mark, count in drawn.right.marks.items()}
        ('jax-x64 and numpy, result_type: 2 of 4 cells differ', {'wider in numpy': 2})
        """
        title = f"{self.left.rules} and {self.right.rules}, {self.left.operation}: {self.summary}"
        left, right = (self._drawn(table, short=True) for table in (self.left, self.right))
        if triples is None:
            return SideBySide(title, left, right)
        notes = tuple(
            Note(heading, tuple(f"({a}, {b}), {c}" for a, b, c in triples.only[rules][:shown]))
            for rules, heading in triples.headings().items()
        )
        return SideBySide(title, left, right, "Triples whose dtype depends on the grouping", notes)

    def _drawn(self, table: RuleTable, *, short: bool, note: str = "") -> Table:
        marks = {how: Mark(how, row.symbol, self.meaning(how)) for how, row in DIFFERENCES.items()}
        hints = {
            pair: f"{self.left.decisions[pair]}\n\n{self.right.decisions[pair]}\n\n{self.meaning(how)}"
            for pair, how in self.differing.items()
        }
        differing = {pair: marks[how] for pair, how in self.differing.items()}
        return table.drawing(short=short, marks=differing, hints=hints, note=note)

    def data(self) -> dict[str, Any]:
        """The comparison as plain data for JSON."""
        cells = [
            {"left": a, "right": b, "how": how, self.left.rules: left, self.right.rules: right}
            for (a, b), how in self.differing.items()
            for shown in [told if how == "value" else _name]
            for left, right in [(shown(self.left.decisions[a, b]), shown(self.right.decisions[a, b]))]
        ]
        return {
            "rules": [self.left.rules, self.right.rules],
            "operation": self.left.operation,
            "types": list(self.left.types),
            "cells": len(self.left.decisions),
            "differing": len(self.differing),
            "counts": self.counts,
            "differences": cells,
        }


def _name(decision: Decision) -> str | None:
    return None if decision.result is None else decision.result.name


def told(decision: Decision) -> str:
    """The dtype of a result, and what becomes of its Python numbers.

    >>> int8, number = as_operand("int8"), as_operand(1000)
    >>> told(get_rules("torch").decide("add", (int8, number)))
    'int8, b wraps to -24'
    """
    changes = (f"{letter(change.position)} {change}" for change in decision.number_changes)
    return ", ".join((_name(decision) or "refused", *changes))


def difference(left: Decision, right: Decision) -> str | None:
    """How a decision differs from another one, as a key of `DIFFERENCES`; None where it does not.

    Args:
        left: the one.
        right: the other. That one of them is weak is no difference. Of one dtype they differ where a Python number
            becomes another one.

    >>> int8 = as_operand("int8")
    >>> difference(*(get_rules(rules).decide("divide", (int8, int8)) for rules in ("torch", "numpy")))
    'wider'
    """
    if left.result is None or right.result is None:
        return None if left.result is right.result else ("refused" if right.result is None else "accepted")
    if left.result.dtype == right.result.dtype:
        # Of NaN all are alike.
        became = ([(each.position, str(each.becomes)) for each in of.number_changes] for of in (left, right))
        return None if next(became) == next(became) else "value"
    one, other = as_format(left.result.dtype), as_format(right.result.dtype)
    if CATEGORIES.index(one.category) != CATEGORIES.index(other.category):
        return "kind"
    if one.bits == other.bits:
        return "other"
    return "wider" if other.bits > one.bits else "narrower"


def compare(
    left: str | RuleSet | None,
    right: str | RuleSet,
    operation: str | None = None,
    types: str | Sequence[str] = "standard",
    *,
    weak_as_64_bit: bool = False,
    unknown: Collection[str] = (),
) -> Comparison:
    """Compare what two rule sets decide for every ordered pair of some types.

    Args:
        left: a rule set or its name; None for the default.
        right: the other.
        operation: name of the operation; None where no particular one is meant.
        types: as for `type_names`.
        weak_as_64_bit: whether the right one reads Python numbers as 64-bit dtypes, as spec/jax-type-promotion.rst
            has NumPy do.
        unknown: formats the right one is taken not to know, as NumPy did not know bfloat16 when that page was written.

    Raises:
        UnknownNameError: for an unknown name.
        ArgumentError: for two rule sets of one name.

    >>> compare("jax-x64", "numpy", types="int32,float16,float32").counts
    {'wider': 4}
    >>> compare("jax-x64", "torch", "multiply", types="float16,131072.0").counts  # torch rounds the product alone
    {'value': 2, 'narrower': 1}
    """
    refuse_namesakes(get_rules(left), get_rules(right))
    one = rule_table(left, operation, types)
    other = rule_table(right, operation, types, stand_ins=WIDEST if flag("weak_as_64_bit", weak_as_64_bit) else None)
    unheard = {as_format(name).name for name in iterable("unknown", unknown, "formats")}
    differing: dict[tuple[str, str], str] = {}
    for pair, decision in one.decisions.items():
        how = "refused" if unheard.intersection(pair) else difference(decision, other.decisions[pair])
        if how is not None:
            differing[pair] = how
    return Comparison(one, other, differing)


def refuse_namesakes(*rule_sets: RuleSet) -> None:
    """Refuse rule sets that nobody could tell apart.

    Raises:
        ArgumentError: for two of one name.
    """
    named: dict[str, RuleSet] = {}
    for rules in rule_sets:
        if named.setdefault(rules.name, rules) != rules:
            raise ArgumentError(f"two rule sets are called {shown(rules.name)}: give one of them another name")


@dataclass(frozen=True, slots=True)
class Groupings:
    """The triples of types whose dtype depends on the grouping, under two rule sets.

    Args:
        counts: how many there are, by rule set.
        only: those there are under this rule set and not under the other.
    """

    counts: dict[str, int]
    only: dict[str, list[tuple[str, str, str]]]

    def headings(self) -> dict[str, str]:
        """The counts of each rule set, in words."""
        return {rules: f"{rules}: {n}, {len(self.only[rules])} of them only here" for rules, n in self.counts.items()}


def compare_groupings(left: str | RuleSet, right: str | RuleSet, types: str | Sequence[str]) -> Groupings:
    """Compare which triples of types two rule sets group differently.

    Args:
        left: a rule set or its name.
        right: the other.
        types: as for `rule_table`.

    Raises:
        UnknownNameError: for an unknown name.

    >>> compare_groupings("jax-x64", "numpy", ["int8", "uint8", "float16"]).counts
    {'jax-x64': 0, 'numpy': 4}
    """
    names = type_names(types)
    one, other = (set(groupings(rules, names)) for rules in (left, right))
    both = get_rules(left).name, get_rules(right).name
    return Groupings(
        dict(zip(both, (len(one), len(other)), strict=True)),
        dict(zip(both, (sorted(one - other), sorted(other - one)), strict=True)),
    )


def groupings(rules: str | RuleSet, types: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The triples of types for which the two ways of grouping pairs give different dtypes, or one of them a refusal.

    Args:
        rules: a rule set or its name.
        types: names of formats and weak kinds.
    """
    rule_set = get_rules(rules)

    def join(a: str, b: str) -> str | None:
        return _name(rule_set.decide(None, (as_operand(a), as_operand(b))))

    for found in counterexamples(join, [name for name in types if not is_number(name)]):
        if found.law == "associative":
            a, b, c = found.nodes
            yield a, b, c
