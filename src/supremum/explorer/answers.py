"""The answers of rule sets to everything that users can type, with as few decisions as possible, encoded as numbers.

Explanations that decisions share are stored once, as templates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

from supremum.decisions import Decision
from supremum.explorer.number_classes import SPECIAL, NumberClasses
from supremum.formats import as_format, format_names
from supremum.operands import WEAK_NAMES, Operand, as_operand
from supremum.rules import RuleSet, get_rules
from supremum.typing import Scalar

WRITTEN = ("\x01", "\x02")
"""The placeholders of operands as written, such as `uint8[]` or `int* (256)`."""
NAMED = ("\x03", "\x04")
"""The placeholders of operands' names, such as `uint8` or `int*`."""
RESULT, OPERATION = "\x05", "\x06"
CLIMBED = ("\x07", "\x08")
"""The placeholders of operands' paths in a lattice."""
CHANGED = ("\x0e", "\x0f")
"""The delimiters of the formats that a number is converted to; the page computes how the number changes."""
QUESTION = "result_type"
"""The operation that stands for no particular one."""
Table: TypeAlias = "tuple[tuple[int, ...], ...]"
"""The cell of each pair of operands, row by row."""
Item = TypeVar("Item")
_WORDS = re.compile(r"([A-Za-z]\w*\*?)")
_ARRAYS = tuple(map(as_operand, format_names()))
_KINDS = (*map(as_operand, WEAK_NAMES), as_operand(False), as_operand(True))
TYPES: tuple[Operand, ...] = (*_ARRAYS, *_KINDS)
"""The operands of every operation: arrays of each format, the weak kinds, and Python's two bools."""
_NAMED: tuple[Operand, ...] = (*TYPES, *(replace(operand, ndim=0) for operand in _ARRAYS))
"""The operands that have a name: `TYPES` and the 0-d arrays."""


class Answers:
    r"""The answers of the rule sets, without duplicates.

    >>> from supremum import explain
    >>> answers = Answers()
    >>> answers.number(explain("uint8", "int8", rules="jax-x64"))
    0
    >>> next(iter(answers.texts)).splitlines() == [
    ...     f"a\t{WRITTEN[0]} -> {RESULT}",
    ...     f"b\t{WRITTEN[1]} -> {RESULT}",
    ...     f"why\t{RESULT} is the least upper bound: {CLIMBED[0]}, {CLIMBED[1]}",
    ... ]
    True
    """

    def __init__(self) -> None:
        self.results: dict[tuple[str, str, str], int] = {("-", "", "refused"): 0}
        """The name, dtype and description of each result, with its index; the first stands for a refusal."""
        self.texts: dict[str, int] = {}
        """The templates of explanations, with their indices; each line is a label, a tab and a text."""
        self.lossy: set[int] = set()
        """The indices of explanations in which not every value of an operand survives its cast."""
        self.paths: dict[tuple[str, ...], int] = {(): 0}
        """The paths in lattices, with their indices; the first is empty."""
        self.cells: dict[tuple[int, int, int, int], int] = {}
        """The result, the text and the paths of two operands, as indices from above, with the index of the cell."""

    def number(self, decision: Decision) -> int:
        """The index of a decision in the cells; adds the decision if it is new.

        Args:
            decision: a decision about one or two operands.
        """
        result = decision.result
        shown = ("-", "", "refused") if result is None else (result.name, as_format(result.dtype).name, str(result))
        of_a, of_b = (index(self.paths, path) for path in (*decision.paths, (), ())[:2])
        text = index(self.texts, _template(decision))
        if any(cast.lossy for cast in decision.casts):
            self.lossy.add(text)
        return index(self.cells, (index(self.results, shown), text, of_a, of_b))


def index(known: dict[Item, int], item: Item) -> int:
    """The index of an item; adds the item if it is new."""
    return known.setdefault(item, len(known))


def has_fix(decision: Decision) -> bool:
    """Whether the page has the fix of a refusal; other fixes take most of the time to find, for little use.

    These are the fixes of operations and those of Python numbers, which depend on the exact number.
    """
    is_simple = all(each.value is None and (each.dtype is None or each.ndim is None) for each in decision.operands)
    return is_simple and decision.operation == QUESTION


def _no_fix(_operands: tuple[Operand, ...]) -> None:
    """The search for a fix that the page does not have."""


def _template(decision: Decision) -> str:
    """The lines of an explanation, with placeholders for words that differ between similar decisions."""
    operands, verdict = decision.operands, decision.verdict
    # Without these steps, the explanation does not mention how numbers change.
    without = replace(verdict, number_steps=()) if verdict.number_steps else verdict
    find_fix = decision.find_fix if has_fix(decision) else _no_fix
    shown_decision = Decision(decision.rules, decision.operation, operands, without, find_fix)
    placeholders = {decision.operation: OPERATION}
    if decision.result is not None:
        placeholders[as_format(decision.result.dtype).name] = RESULT
    # If both operands have the same name, the placeholder of the first one wins.
    for operand, mark in reversed(list(zip(operands, NAMED, strict=False))):
        placeholders[operand.name] = mark

    def substituted(text: str) -> str:
        parts = _WORDS.split(text)
        parts[1::2] = [placeholders.get(word, word) for word in parts[1::2]]
        return "".join(parts)

    lines: list[str] = []
    for position, (label, text) in enumerate(shown_decision.document().rows):
        if position < len(operands):
            rest = text.removeprefix(str(operands[position]))
            text = WRITTEN[position] + substituted(rest + _conversions(decision, position, rest))
        else:
            for path, mark in zip(decision.paths, CLIMBED, strict=False):
                if len(path) > 1:
                    text = text.replace(" -> ".join(path), mark)
            text = substituted(text)
        lines.append(f"{label}\t{text}")
    return "\n".join(lines)


def _conversions(decision: Decision, position: int, rest: str) -> str:
    """The formats that a number is converted to, if it may change."""
    steps = decision.verdict.number_steps
    if decision.operands[position].value is None or not steps or not steps[position] or rest.endswith("survives"):
        return ""
    return f"{CHANGED[0]}{position}:{','.join(row.name for row in steps[position])}{CHANGED[1]}"


@dataclass(frozen=True, slots=True)
class Question:
    """All answers for one operation, or for no particular one.

    Args:
        named, integers, floats: the row in `table` of each named operand, and of each class of numbers. A particular
            operation has no rows for arrays without dimensions.
        real, imaginary: the row and the column in `complex` of each class of floats, as parts of a complex number.
        complex: the row in `table` of a complex number.
        table: the cell for each pair of rows; those of two numbers are unused.
        alone: the cell of each row as a single operand; empty for a particular operation.
    """

    named: list[int]
    integers: list[int]
    floats: list[int]
    real: list[int]
    imaginary: list[int]
    complex: list[list[int]]
    table: Table
    alone: list[int]


def distinct(rules: RuleSet, operands: Iterable[Operand]) -> tuple[list[Operand], list[int]]:
    """One operand of each sort that a rule set distinguishes, and the sort of each operand as an index."""
    first: dict[Hashable, tuple[int, Operand]] = {}
    sorts = [first.setdefault(rules.key_of(operand), (len(first), operand))[0] for operand in operands]
    return [operand for _, operand in first.values()], sorts


class Asker:
    """Asks one rule set and caches the answers.

    Args:
        rules: the name of the rule set.
        classes: the classes of numbers.
        answers: the collection to add the answers to.
    """

    def __init__(self, rules: str, classes: NumberClasses, answers: Answers) -> None:
        self._rules = replace(get_rules(rules))  # a copy with a separate cache, which is freed with it
        self._classes, self._answers = classes, answers
        self._simple, self._simple_sorts = distinct(self._rules, TYPES)
        self._named, self._named_sorts = distinct(self._rules, _NAMED)
        self._known: dict[Hashable, int] = {}

    def table(self, operation: str) -> Table:
        """The cells of every pair of sorts of `TYPES`, for an operation of two operands."""
        return _frozen([[self._cell(operation, a, b) for b in self._simple] for a in self._simple])

    def _cell(self, operation: str | None, *operands: Operand) -> int:
        # Most operations have the same answer for a pair, except for their name. Numbers differ only in how they are
        # written and change, which the page computes.
        decision = self._rules.decide(operation, operands)
        verdict, name = decision.verdict, decision.operation
        reason = [sentence.replace(name, OPERATION) for sentence in verdict.reason]
        names = [(operand.name, operand.value is None) for operand in operands]
        types = (verdict.result, verdict.compute, verdict.paths, verdict.number_steps)
        key = (has_fix(decision), *names, *types, *reason)
        if key not in self._known:
            self._known[key] = self._answers.number(decision)
        return self._known[key]

    def question(self, operation: str | None = None) -> Question:
        """Ask about everything that users can type.

        Args:
            operation: name of an operation of two operands, to ask about no arrays without dimensions, which takes
                longer; None for no particular operation.
        """
        is_whole = operation is None
        partners, sorts = (self._named, self._named_sorts) if is_whole else (self._simple, self._simple_sorts)
        answers = self._number_answers(partners, operation)
        numbers = answers.without_duplicates()
        table = self._full_table(numbers, partners, operation)
        alone = [self._alone(operand, operation) for operand in partners] + [number.alone for number in numbers]
        rows, kept = _merged(table, alone)
        row_of = dict(zip(numbers, rows[len(partners) :], strict=True))
        return Question(
            named=[rows[sort] for sort in sorts],
            integers=[row_of[number] for number in answers.integers],
            floats=[row_of[number] for number in answers.floats],
            real=answers.real,
            imaginary=answers.imaginary,
            complex=[[row_of[number] for number in line] for line in answers.complex],
            table=_frozen([[table[i][j] for j in kept] for i in kept]),
            alone=[alone[i] for i in kept] if is_whole else [],
        )

    def _number_answers(self, partners: Sequence[Operand], operation: str | None) -> _NumberAnswers:
        """The answers about a number of each class.

        Args:
            partners: the operands beside the numbers.
            operation: name of the operation, or None.
        """
        parts, examples = self._classes.floats, self._classes.integers.examples
        runs = _float_runs(self._classes)

        def beside(numbers: Iterable[Scalar], runs: Iterable[Sequence[int]]) -> list[_Beside]:
            return self._beside(map(as_operand, numbers), runs, partners, operation)

        integers, floats = beside(examples, _runs(examples)), beside(parts, runs)
        real = _first_of_each(beside([complex(part, 0.0) for part in parts], runs))
        imaginary = _first_of_each(beside([complex(0.0, part) for part in parts], runs))
        lines, columns = list(dict.fromkeys(real)), list(dict.fromkeys(imaginary))
        pairs = [complex(parts[x], parts[y]) for x in lines for y in columns]
        in_order = iter(beside(pairs, [[place] for place in range(len(pairs))]))
        return _NumberAnswers(
            integers=integers,
            floats=floats,
            real=[lines.index(first) for first in real],
            imaginary=[columns.index(first) for first in imaginary],
            complex=[[next(in_order) for _ in columns] for _ in lines],
        )

    def _full_table(
        self, numbers: Sequence[_Beside], partners: Sequence[Operand], operation: str | None
    ) -> list[list[int]]:
        """The cell of each pair of operands: first the partners, then the numbers."""
        decided = [[self._cell(operation, a, b) for b in partners] for a in partners]
        of_partners = [[*row, *(number.after[i] for number in numbers)] for i, row in enumerate(decided)]
        unused = [0] * len(numbers)  # of two numbers
        return of_partners + [[*number.before, *unused] for number in numbers]

    def _alone(self, operand: Operand, operation: str | None) -> int:
        return self._cell(None, operand) if operation is None else 0

    def _beside(
        self,
        numbers: Iterable[Operand],
        runs: Iterable[Sequence[int]],
        partners: Sequence[Operand],
        operation: str | None,
    ) -> list[_Beside]:
        """The answers about each number.

        Rules compare numbers with bounds. If two numbers on one side of zero have the same answer, so has every number
        between them.

        Args:
            numbers: the numbers.
            runs: the indices of the numbers, in runs that go away from zero.
            partners: the operands beside them.
            operation: name of the operation, or None.
        """
        operands, sorts = distinct(self._rules, numbers)
        runs_of_sorts = {tuple(dict.fromkeys(sorts[place] for place in run)) for run in runs if run}
        before, after = ([list[int]() for _ in operands] for _ in range(2))
        for partner in partners:
            for rows, swaps in ((before, False), (after, True)):
                cells: dict[int, int] = {}
                for run in runs_of_sorts:
                    calls = [(partner, operands[sort]) if swaps else (operands[sort], partner) for sort in run]
                    cells |= zip(run, _along(calls, partial(self._cell, operation)), strict=True)
                for sort, row in enumerate(rows):
                    row.append(cells[sort])
        alone = [self._alone(operand, operation) for operand in operands]
        answers = [_Beside(tuple(x), tuple(y), cell) for x, y, cell in zip(before, after, alone, strict=True)]
        return [answers[sort] for sort in sorts]


class _Beside(NamedTuple):
    """The answers about a number.

    Args:
        before, after: the cells of the number as the first operand and as the second, with each other operand.
        alone: its cell as a single operand.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    alone: int


class _NumberAnswers(NamedTuple):
    """The answers about a number of each class.

    Args:
        integers, floats: the answers about each class.
        real, imaginary, complex: as in `Question`, with answers instead of rows.
    """

    integers: list[_Beside]
    floats: list[_Beside]
    real: list[int]
    imaginary: list[int]
    complex: list[list[_Beside]]

    def without_duplicates(self) -> list[_Beside]:
        """All answers about numbers, each once."""
        return list(dict.fromkeys((*self.integers, *self.floats, *chain.from_iterable(self.complex))))


def _frozen(table: list[list[int]]) -> Table:
    return tuple(map(tuple, table))


def _first_of_each(answers: Iterable[Hashable]) -> list[int]:
    """For each item, the index of the first one with the same answers."""
    first: dict[Hashable, int] = {}
    return [first.setdefault(each, place) for place, each in enumerate(answers)]


def _along(calls: Sequence[tuple[Operand, Operand]], answer: Callable[[Operand, Operand], int]) -> list[int]:
    """The answers of all calls of a run, found by bisection where they change."""
    answers = {place: answer(*calls[place]) for place in (0, len(calls) - 1)}
    todo = [(0, len(calls) - 1)]
    while todo:
        low, high = todo.pop()
        if answers[low] == answers[high]:
            answers |= dict.fromkeys(range(low, high), answers[low])
        elif high - low > 1:
            middle = (low + high) // 2
            answers[middle] = answer(*calls[middle])
            todo += [(low, middle), (middle, high)]
    return [answers[place] for place in range(len(calls))]


def _merged(table: list[list[int]], alone: list[int]) -> tuple[list[int], list[int]]:
    """The row of each operand in the table without duplicates, and the operands that the table keeps.

    Two operands are duplicates if they agree in row, in column and alone.
    """
    signatures = [(tuple(line), tuple(line[i] for line in table), alone[i]) for i, line in enumerate(table)]
    first = _first_of_each(signatures)
    ordered = sorted(set(first))
    return [ordered.index(i) for i in first], ordered


def _runs(examples: Sequence[float], start: int = 0) -> list[list[int]]:
    """The indices of the numbers below zero and of the others, each run going away from zero."""
    places = range(len(examples))
    negative = [start + i for i in reversed(places) if examples[i] < 0]
    return [negative, [start + i for i in places if examples[i] >= 0]]


def _float_runs(classes: NumberClasses) -> list[list[int]]:
    whole, fractional = classes.whole.examples, classes.fractional.examples
    special = len(whole) + len(fractional)
    return [*_runs(whole), *_runs(fractional, len(whole)), *([special + i] for i in range(len(SPECIAL)))]
