"""The promotion table of a rule set: the decision for every ordered pair of types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from supremum.argument_checks import iterable, mapping, text
from supremum.decisions import Decision
from supremum.errors import OperandError, UnknownNameError
from supremum.formats import CATEGORIES, FORMATS, as_format, format_names
from supremum.lattice import Join
from supremum.operands import WEAK_NAMES, as_operand, number_text, parse_operand, without_flag
from supremum.operations import TABLED, as_operation
from supremum.render import Cell, Mark, Table
from supremum.rules import RuleSet, RulesLike, get_rules

TypeNames: TypeAlias = str | Sequence[str]
"""The types of a table: `"standard"`, `"all"`, or names, as a list or separated by commas."""
ALL_TYPES: tuple[str, ...] = (*format_names(), *WEAK_NAMES)
"""Every format and the weak kinds.

>>> ALL_TYPES[0], ALL_TYPES[-3:]
('bool', ('int*', 'float*', 'complex*'))
"""
# The smallest width, in bits, that every array library has in each category.
_STANDARD_WIDTHS = {"bool": 1, "integer": 8, "float": 16, "complex": 64}
STANDARD_TYPES: tuple[str, ...] = (
    *(row.name for row in FORMATS if row.bits >= _STANDARD_WIDTHS[row.category]),
    *WEAK_NAMES,
)
"""The eighteen types of JAX type promotion (JEP 9407): those of every array library, bfloat16 and the weak kinds.

>>> len(STANDARD_TYPES), STANDARD_TYPES[9:13]
(18, ('bfloat16', 'float16', 'float32', 'float64'))
"""

_WORD = re.compile(r"([a-z]\w*)\*?")
_SETS = {"standard": STANDARD_TYPES, "all": ALL_TYPES}


def type_names(types: TypeNames) -> tuple[str, ...]:
    """Parse the types of a table.

    Args:
        types: `"standard"`, `"all"`, or names of formats and weak kinds and Python numbers, as a list or separated by
            commas.

    Raises:
        UnknownNameError: for an unknown name.
        OperandError: for anything other than a name or a list of names, and for a nullable dtype; a `TypeError`.

    >>> type_names("int8, f32,float*")
    ('int8', 'float32', 'float*')
    >>> type_names("float16, 1e6")
    ('float16', '1e6')
    """
    if isinstance(types, str) and types in _SETS:
        return _SETS[types]
    listed = types.split(",") if isinstance(types, str) else iterable("types", types, "names")
    names = [text("a type", name).strip() for name in listed]
    return tuple(dict.fromkeys(name if is_number(name) else _type_name(name) for name in names))


def _type_name(name: str) -> str:
    operand = parse_operand(name)
    if operand.nullable:
        raise OperandError(f"a type of a table must not be nullable, got {name!r}; {without_flag(operand)}")
    return operand.name


def is_number(name: str) -> bool:
    """Whether a type of a table is a Python number."""
    try:
        complex(name)
    except ValueError:
        return False
    return True


def result_name(decision: Decision) -> str | None:
    """The name of the result; None for a refusal."""
    return None if decision.result is None else decision.result.name


STYLES: dict[str, str] = {
    **{category: category for category in CATEGORIES},
    "changed": "a number changes its value",
    "refused": "refused (-)",
}
"""The classes that color decisions, keys of `PALETTE`, and their meanings in legends."""


def style_of(decision: Decision) -> str:
    """The class of a decision, a key of `STYLES`.

    >>> operands = as_operand("int8"), as_operand(1000)
    >>> [
    ...     style_of(get_rules(name).decide("add", operands))
    ...     for name in ("numpy-legacy", "jax-x64", "numpy")
    ... ]
    ['integer', 'changed', 'refused']
    """
    if decision.result is None:
        return "refused"
    return "changed" if decision.number_changes else as_format(decision.result.dtype).category


def changed_numbers(decision: Decision) -> tuple[str, ...]:
    """What becomes of each Python number that the conversion to the result's dtype changes.

    >>> changed_numbers(
    ...     get_rules("torch").decide("add", (as_operand("int8"), as_operand(1000)))
    ... )
    ('1000 wraps to -24',)
    """
    return tuple(f"{number_text(change.value)} {change}" for change in decision.number_changes)


def result_text(decision: Decision) -> str:
    """The short name of a result's dtype, and what becomes of its Python numbers.

    >>> result_text(
    ...     get_rules("torch").decide("add", (as_operand("int8"), as_operand(1000)))
    ... )
    'i8, 1000 wraps to -24'
    """
    name = result_name(decision)
    return ", ".join((short_name(name) if name else "refused", *changed_numbers(decision)))


def join_of(rules: RuleSet) -> Join:
    """The decisions of a rule set as a function of two names; the function returns None for a refusal."""
    return lambda a, b: result_name(rules.decide(None, (as_operand(a), as_operand(b))))


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The decisions of a rule set for every ordered pair of some types.

    Args:
        rules: name of the rule set.
        operation: name of the operation.
        types: the types, in order.
        decisions: the decision for every ordered pair.

    >>> table = rule_table("torch", "divide", types="int8,int64")
    >>> table.decisions["int8", "int64"].dtype, table.data()["table"]["int64"]
    (dtype('float32'), {'int8': 'float32', 'int64': 'float32'})
    """

    rules: str
    operation: str
    types: tuple[str, ...]
    decisions: dict[tuple[str, str], Decision]

    def data(self) -> dict[str, Any]:
        """The table as plain data for JSON; a refusal is None.

        `"changes"` has the pairs for which a Python number changes its value.
        """
        changes = {pair: changed_numbers(decision) for pair, decision in self.decisions.items()}
        return {
            "rules": self.rules,
            "operation": self.operation,
            "types": list(self.types),
            "table": {a: {b: result_name(self.decisions[a, b]) for b in self.types} for a in self.types},
            "changes": [{"left": a, "right": b, "numbers": list(of)} for (a, b), of in changes.items() if of],
        }

    def drawing(
        self,
        *,
        marks: Mapping[tuple[str, str], Mark] | None = None,
        hints: Mapping[tuple[str, str], str] | None = None,
        note: str = "",
    ) -> Table:
        """The table for `supremum.render`, with short names of types.

        Args:
            marks: the marks of pairs that stand out.
            hints: the hints of pairs; the default is their decision.
            note: text to add to the title.
        """

        def cell(a: str, b: str) -> Cell:
            decision = self.decisions[a, b]
            mark, hint = (marks or {}).get((a, b)), (hints or {}).get((a, b)) or str(decision)
            return Cell(result_text(decision) if decision else "-", style_of(decision), hint, mark)

        columns = tuple(map(short_name, self.types))
        rows = tuple((short_name(a), tuple(cell(a, b) for b in self.types)) for a in self.types)
        used = {each.style for _, cells in rows for each in cells}
        legend = tuple((style, meaning) for style, meaning in STYLES.items() if style in used)
        results = filter(None, map(result_name, self.decisions.values()))
        named = full_names((*self.types, *results))
        return Table(f"{self.operation} under {self.rules}{note}", columns, rows, legend, named)


def short_name(name: str) -> str:
    """The name of a type in tables, such as `u8` or `f*`; a number is its own name."""
    if is_number(name):
        return name
    return f"{name[0]}*" if name in WEAK_NAMES else as_format(name, columns=True).short_name


def with_short_names(text: str) -> str:
    """Replace each name of a type in a text by its short name; a star after the name of a format means weak.

    Args:
        text: the text of a cell.

    >>> with_short_names("int8[:] float* float32* with any float")
    'i8[:] f* f32* with any float'
    """

    def short(word: re.Match[str]) -> str:
        name = word[0] if word[0] in ALL_TYPES else word[1]
        return short_name(name) + word[0].removeprefix(name) if name in ALL_TYPES else word[0]

    return _WORD.sub(short, text)


def full_names(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of the short name of a type and its name, for legends; types without a short name are left out.

    Args:
        names: names of types.

    >>> full_names(("bool", "uint8", "float*", "uint8"))
    (('u8', 'uint8'), ('f*', 'float* (weak)'))
    """
    short = {short_name(name): f"{name} (weak)" if name in WEAK_NAMES else name for name in names}
    return tuple((key, name) for key, name in short.items() if key != name)


def rule_table(
    rules: RulesLike | None = None,
    operation: str | None = None,
    types: TypeNames = "standard",
    *,
    stand_ins: Mapping[str, str] | None = None,
) -> RuleTable:
    """Decide every ordered pair of some types.

    Args:
        rules: a rule set or its name; None for the default.
        operation: name of the operation; None for no particular one.
        types: as for `type_names`.
        stand_ins: the types to decide instead of others, by the names of the others.

    Raises:
        UnknownNameError: for an unknown name, or an operation that does not take two operands.

    >>> rule_table("jax-x64", types="int8,uint8,float*").data()["table"]["int8"]
    {'int8': 'int8', 'uint8': 'int16', 'float*': 'float*'}
    """
    rule_set, row, names = get_rules(rules), as_operation(operation), type_names(types)
    if row.arity not in (None, 2):
        raise UnknownNameError("operation of two operands", row.name, ["result_type", "promote_types", *TABLED])
    others: Mapping[str, str] = {} if stand_ins is None else mapping("stand_ins", stand_ins, '{"float*": "float64"}')
    operands = {name: parse_operand(others.get(name, name)) for name in names}
    decisions = {(a, b): rule_set.decide(row, (operands[a], operands[b])) for a in names for b in names}
    return RuleTable(rule_set.name, row.name, names, decisions)
