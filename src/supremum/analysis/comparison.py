"""Two rule sets side by side: the cells in which they differ, and the triples they group differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from supremum.analysis.tables import (
    RuleTable,
    TypeNames,
    changed_numbers,
    is_number,
    join_of,
    result_name,
    rule_table,
    short_name,
    type_names,
)
from supremum.argument_checks import flag
from supremum.decisions import Decision
from supremum.errors import ArgumentError, shown
from supremum.formats import CATEGORIES, as_format
from supremum.lattice import counterexamples
from supremum.render import Mark, SideBySide, Table
from supremum.rules import RulesLike, get_rules, weak_defaults

WIDEST: dict[str, str] = weak_defaults("int64", "float64", "complex128")
"""The 64-bit dtype of each weak kind, which NumPy before version 2 gave Python numbers.

>>> WIDEST["float*"]
'float64'
>>> types = "float32,float*"
>>> compare("jax-x64", "numpy", types=types, weak_as_64_bit=True).differing
{('float32', 'float*'): 'wider', ('float*', 'float32'): 'wider'}
"""


class Difference(NamedTuple):
    """A way in which two decisions differ.

    Args:
        symbol: the symbol that marks it.
        meaning: its description, with `{left}` and `{right}` for the names of the rule sets.

    >>> how = DIFFERENCES["refused"]
    >>> how.symbol, how.meaning.format(left="torch", right="array-api")
    ('✕', 'refused by array-api')
    """

    symbol: str
    meaning: str


DIFFERENCES: dict[str, Difference] = {
    "wider": Difference("▲", "wider in {right}"),
    "narrower": Difference("▼", "narrower in {right}"),
    "refused": Difference("✕", "refused by {right}"),
    "accepted": Difference("○", "refused by {left}"),
    "kind": Difference("◆", "a different kind of number"),
    "value": Difference("≠", "a Python number gets a different value in {right}"),
    "other": Difference("≈", "a different format of the same width"),
}
"""Every way in which two decisions can differ.

>>> {how: each.symbol for how, each in DIFFERENCES.items()}
{'wider': '▲', 'narrower': '▼', 'refused': '✕', 'accepted': '○', 'kind': '◆', 'value': '≠', 'other': '≈'}
"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two tables over the same types.

    Args:
        left: the first table.
        right: the second table.
        differing: for each pair where the dtype, the refusal or the value of a Python number differs, how the right
            table differs from the left, as a key of `DIFFERENCES`.

    >>> from supremum.render import table_to_markdown
    >>> found = compare("torch", "array-api", types="int64,float32")
    >>> found.summary, found.differing
    ('2 of 4 cells differ', {('int64', 'float32'): 'refused', ('float32', 'int64'): 'refused'})
    >>> print(table_to_markdown(found.drawing()), end="")
    **result_type under torch, 2 of 4 cells differ from array-api**
    <BLANKLINE>
    | | i64 | f32 |
    |---|---|---|
    | **i64** | i64 | **f32** |
    | **f32** | **f32** | f32 |
    <BLANKLINE>
    i64 int64, f32 float32
    """

    left: RuleTable
    right: RuleTable
    differing: dict[tuple[str, str], str]

    @property
    def counts(self) -> dict[str, int]:
        """The number of pairs that differ in each way, the most frequent first."""
        return dict(Counter(self.differing.values()).most_common())

    @property
    def summary(self) -> str:
        """The number of differing cells, in words."""
        return f"{len(self.differing)} of {len(self.left.decisions)} cells differ"

    def meaning(self, how: str) -> str:
        """The description of a difference between these two, such as `"wider in numpy"`."""
        return DIFFERENCES[how].meaning.format(left=self.left.rules, right=self.right.rules)

    def drawing(self) -> Table:
        """The left table for `supremum.render`, with the differing cells marked."""
        return self._drawn(self.left, note=f", {self.summary} from {self.right.rules}")

    def side_by_side(self, triples: Groupings | None = None, *, shown: int = 5) -> SideBySide:
        """Both tables for `supremum.render.side_by_side`, with the differing cells marked.

        Args:
            triples: the triples whose dtype depends on the grouping, to list below.
            shown: the number of triples to list for each rule set.

        >>> drawn = compare("jax-x64", "numpy", types="int32,float32").side_by_side()
        >>> drawn.title, {mark.meaning: count for mark, count in drawn.right.marks.items()}
        ('jax-x64 and numpy, result_type: 2 of 4 cells differ', {'wider in numpy': 2})
        """
        title = f"{self.left.rules} and {self.right.rules}, {self.left.operation}: {self.summary}"
        left, right = (self._drawn(table) for table in (self.left, self.right))
        if triples is None:
            return SideBySide(title, left, right)
        notes = tuple((heading, triples.written(rules, shown)) for rules, heading in triples.headings().items())
        return SideBySide(title, left, right, "Triples whose dtype depends on the grouping", notes)

    def _drawn(self, table: RuleTable, *, note: str = "") -> Table:
        marks = {pair: Mark(how, DIFFERENCES[how].symbol, self.meaning(how)) for pair, how in self.differing.items()}
        hints = {
            pair: f"{self.left.decisions[pair]}\n\n{self.right.decisions[pair]}\n\n{mark.meaning}"
            for pair, mark in marks.items()
        }
        return table.drawing(marks=marks, hints=hints, note=note)

    def data(self) -> dict[str, Any]:
        """The comparison as plain data for JSON."""
        cells: list[dict[str, Any]] = []
        for (a, b), how in self.differing.items():
            decisions = {each.rules: each.decisions[a, b] for each in (self.left, self.right)}
            changes = {rules: list(of) for rules, each in decisions.items() if (of := changed_numbers(each))}
            cell = {"left": a, "right": b, "how": how} | {rules: result_name(of) for rules, of in decisions.items()}
            cells.append(cell | ({"changes": changes} if changes else {}))
        return {
            "rules": [self.left.rules, self.right.rules],
            "operation": self.left.operation,
            "types": list(self.left.types),
            "cells": len(self.left.decisions),
            "differing": len(self.differing),
            "counts": self.counts,
            "differences": cells,
        }


def difference(left: Decision, right: Decision) -> str | None:
    """How two decisions differ, as a key of `DIFFERENCES`; None if they agree.

    Weakness does not count. Decisions with the same dtype differ if a Python number gets different values.

    Args:
        left: the first decision.
        right: the second decision.

    >>> from supremum.operands import as_operand
    >>> int8 = as_operand("int8")
    >>> difference(
    ...     *(
    ...         get_rules(rules).decide("divide", (int8, int8))
    ...         for rules in ("torch", "numpy")
    ...     )
    ... )
    'wider'
    """
    if left.result is None or right.result is None:
        return None if left.result is right.result else ("refused" if right.result is None else "accepted")
    if left.result.dtype == right.result.dtype:
        # As text, because NaN is not equal to itself.
        one, other = ([(each.position, str(each.becomes)) for each in of.number_changes] for of in (left, right))
        return None if one == other else "value"
    one, other = as_format(left.result.dtype), as_format(right.result.dtype)
    if CATEGORIES.index(one.category) != CATEGORIES.index(other.category):
        return "kind"
    if one.bits == other.bits:
        return "other"
    return "wider" if other.bits > one.bits else "narrower"


def compare(
    left: RulesLike | None,
    right: RulesLike,
    operation: str | None = None,
    types: TypeNames = "standard",
    *,
    weak_as_64_bit: bool = False,
) -> Comparison:
    """Compare the decisions of two rule sets for every ordered pair of some types.

    Args:
        left: a rule set or its name; None for the default.
        right: the other rule set or its name.
        operation: name of the operation; None for no particular one.
        types: as for `type_names`.
        weak_as_64_bit: whether the right rule set takes Python numbers for 64-bit dtypes, as NumPy does in JAX type
            promotion (JEP 9407).

    Raises:
        UnknownNameError: for an unknown name.
        ArgumentError: if two different rule sets have the same name.

    >>> compare("jax-x64", "numpy", types="int32,float16,float32").counts
    {'wider': 4}
    >>> compare(  # torch rounds the product alone
    ...     "jax-x64", "torch", "multiply", types="float16,131072.0"
    ... ).counts
    {'value': 2, 'narrower': 1}
    """
    first, second = get_rules(left), get_rules(right)
    if first.name == second.name and first != second:
        raise ArgumentError(f"Rule sets must have different names, got {shown(first.name)} twice; rename one.")
    one = rule_table(first, operation, types)
    other = rule_table(second, operation, types, stand_ins=WIDEST if flag("weak_as_64_bit", weak_as_64_bit) else None)
    ways = {pair: difference(decision, other.decisions[pair]) for pair, decision in one.decisions.items()}
    return Comparison(one, other, {pair: how for pair, how in ways.items() if how is not None})


@dataclass(frozen=True, slots=True)
class Groupings:
    """The triples of types whose dtype depends on the grouping, under two rule sets.

    Args:
        counts: the number of triples under each rule set.
        only: for each rule set, the triples that are not among those of the other.

    >>> found = compare_groupings("jax-x64", "numpy", ["int8", "uint8", "float16"])
    >>> found.headings()["numpy"], found.only["numpy"][0]
    ('numpy: 4, 4 of them only here', ('float16', 'int8', 'uint8'))
    """

    counts: dict[str, int]
    only: dict[str, list[tuple[str, str, str]]]

    def headings(self) -> dict[str, str]:
        """The counts of each rule set, in words."""
        return {rules: f"{rules}: {n}, {len(self.only[rules])} of them only here" for rules, n in self.counts.items()}

    def written(self, rules: str, shown: int) -> tuple[str, ...]:
        """The first triples of a rule set that the other does not have, with short names.

        Args:
            rules: the name of the rule set.
            shown: the most triples to write.

        >>> compare_groupings("jax-x64", "numpy", ["int8", "uint8", "float16"]).written(
        ...     "numpy", 1
        ... )
        ('(f16, i8), u8',)
        """
        triples = (map(short_name, triple) for triple in self.only[rules][:shown])
        return tuple("({}, {}), {}".format(*names) for names in triples)


def compare_groupings(left: RulesLike, right: RulesLike, types: TypeNames) -> Groupings:
    """Compare the triples of types whose dtype depends on the grouping under two rule sets.

    Args:
        left: a rule set or its name.
        right: the other rule set or its name.
        types: as for `rule_table`.

    Raises:
        UnknownNameError: for an unknown name.

    >>> compare_groupings("jax-x64", "numpy", ["int8", "uint8", "float16"]).counts
    {'jax-x64': 0, 'numpy': 4}
    """
    names = type_names(types)
    one, other = (set(groupings(rules, names)) for rules in (left, right))
    first, second = get_rules(left).name, get_rules(right).name
    counts = {first: len(one), second: len(other)}
    return Groupings(counts, {first: sorted(one - other), second: sorted(other - one)})


def groupings(rules: RulesLike, types: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The triples of types whose dtype or refusal depends on which pair is grouped first.

    Args:
        rules: a rule set or its name.
        types: names of formats and weak kinds.
    """
    for example in counterexamples(join_of(get_rules(rules)), [name for name in types if not is_number(name)]):
        if example.law == "associative":
            a, b, c = example.nodes
            yield a, b, c
