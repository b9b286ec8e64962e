"""The answers of rule sets to everything that users can type, with as few decisions as possible, encoded as numbers.

Explanations that decisions share are stored once, as templates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from supremum.decisions import Decision
from supremum.explorer.number_classes import SPECIAL, NumberClasses
from supremum.formats import FORMATS, format_names
from supremum.operands import WEAK_NAMES, Operand, as_operand
from supremum.rules import RuleSet, get_rules

WRITTEN = ("\x01", "\x02")
"""The placeholders of operands as written, such as `uint8[]` or `int* (256)`."""
NAMED = ("\x03", "\x04")
"""The placeholders of operands' names, such as `uint8` or `int*`."""
RESULT, OPERATION = "\x05", "\x06"
CLIMBED = ("\x07", "\x08")
"""The placeholders of operands' paths in a lattice."""
CHANGED = ("\x0e", "\x0f")
"""The delimiters of the formats that a number is converted to; the page computes how the number changes."""
Item = TypeVar("Item")
_WORD = re.compile(r"[A-Za-z]\w*\*?")
_ARRAYS = tuple(map(as_operand, format_names()))
_KINDS = (*map(as_operand, WEAK_NAMES), as_operand(False), as_operand(True))
TYPES: tuple[Operand, ...] = (*_ARRAYS, *_KINDS)
"""The operands of every operation: arrays of each format, the weak kinds, and Python's two bools."""
_NAMED: tuple[Operand, ...] = (*TYPES, *(replace(operand, ndim=0) for operand in _ARRAYS))
"""The operands that have a name: `TYPES` and the 0-d arrays."""
_LARGEST = max(float(row.max) for row in FORMATS if row.is_inexact)


class Answers:
    r"""The answers of the rule sets, without duplicates.

    >>> from supremum import explain
    >>> answers = Answers()
    >>> answers.number(explain("uint8", "int8", rules="jax-x64"), with_fix=True)
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

    def number(self, decision: Decision, *, with_fix: bool) -> int:
        """The index of a decision in the cells; adds the decision if it is new.

        Args:
            decision: a decision about one or two operands.
            with_fix: whether to include the fix of a refusal, which takes longer than deciding.
        """
        result = decision.result
        shown = ("-", "", "refused") if result is None else (result.name, str(result.dtype), str(result))
        of_a, of_b = (index(self.paths, path) for path in (*decision.paths, (), ())[:2])
        text = index(self.texts, _template(decision, with_fix=with_fix))
        if any(cast.lossy for cast in decision.casts):
            self.lossy.add(text)
        return index(self.cells, (index(self.results, shown), text, of_a, of_b))

    def merge(self, other: Answers) -> list[int]:
        """Add the answers of another object.

        Returns:
            The index here of each cell of the other object.
        """
        results = [index(self.results, each) for each in other.results]
        texts = [index(self.texts, each) for each in other.texts]
        paths = [index(self.paths, each) for each in other.paths]
        self.lossy |= {texts[each] for each in other.lossy}
        return [index(self.cells, (results[r], texts[t], paths[a], paths[b])) for r, t, a, b in other.cells]


def index(known: dict[Item, int], item: Item) -> int:
    """The index of an item; adds the item if it is new."""
    return known.setdefault(item, len(known))


def _template(decision: Decision, *, with_fix: bool) -> str:
    """The lines of an explanation, with placeholders for words that differ between similar decisions."""
    told = decision
    if not decision and not with_fix:
        told = Decision(decision.rules, decision.operation, decision.operands, decision.verdict, lambda _: None)
    placeholders = {decision.operation: OPERATION}
    if decision.result is not None:
        placeholders[str(decision.result.dtype)] = RESULT
    # If both operands have the same name, the placeholder of the first one wins.
    for operand, mark in reversed(list(zip(decision.operands, NAMED, strict=False))):
        placeholders[operand.name] = mark

    def substituted(text: str) -> str:
        return _WORD.sub(lambda word: placeholders.get(word[0], word[0]), text)

    lines: list[str] = []
    for position, (label, text) in enumerate(told.document().rows):
        if position < len(decision.operands):
            written = str(decision.operands[position])
            assert text.startswith(written)
            rest = text[len(written) :].removesuffix(_note(decision, position))
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


def _note(decision: Decision, position: int) -> str:
    """The part of an explanation that tells how a number changes."""
    return next((f", {change}" for change in decision.number_changes if change.position == position), "")


@dataclass(frozen=True, slots=True)
class Question:
    """All answers for one operation, or for no particular one.

    Args:
        named, integers, floats: the row in `table` of each named operand, and of each class of numbers.
        real, imaginary: the row and the column in `complex` of each class of floats, as parts of a complex number.
        complex: the row in `table` of a complex number.
        table: the cell for each pair of rows.
        alone: the cell of each row as a single operand; empty for a particular operation.
    """

    named: list[int]
    integers: list[int]
    floats: list[int]
    real: list[int]
    imaginary: list[int]
    complex: list[list[int]]
    table: list[list[int]]
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
        self._rules, self._classes, self._answers = get_rules(rules), classes, answers
        self._simple, _ = distinct(self._rules, TYPES)
        self._partners, self._sorts = distinct(self._rules, _NAMED)
        self._integers = list(map(as_operand, classes.integers.examples))
        self._floats = list(map(as_operand, classes.floats))
        self._complex = cache(_complex)
        self._known: dict[Hashable, int] = {}

    def table(self, operation: str) -> list[list[int]]:
        """The cells of every pair of sorts of `TYPES`, for an operation of two operands."""
        asked = replace(self._rules)  # a copy with a separate cache, which is freed with it
        return [[self._cell(asked.decide(operation, (a, b))) for b in self._simple] for a in self._simple]

    def _cell(self, decision: Decision) -> int:
        # Most operations have the same answer for a pair, except for their name.
        verdict, name = decision.verdict, decision.operation
        reason = tuple(sentence.replace(name, OPERATION) for sentence in verdict.reason)
        key = (
            *map(id, decision.operands),
            verdict.result,
            verdict.compute,
            verdict.paths,
            verdict.number_steps,
            reason,
        )
        if key not in self._known:
            self._known[key] = self._answers.number(decision, with_fix=False)
        return self._known[key]

    def question(self, operation: str | None = None) -> Question:
        """Ask about everything that users can type.

        Args:
            operation: name of an operation of two operands, to store its refusals without fixes; None for no particular
                operation.
        """
        asked = replace(self._rules)
        asked_before: dict[tuple[int, int], int] = {}

        def cell(*operands: Operand) -> int:
            if operation is None:
                return self._answers.number(asked.decide(None, operands), with_fix=True)
            return self._cell(asked.decide(operation, operands))

        def answer(a: Operand, b: Operand) -> int:
            pair = (id(a), id(b))
            if pair not in asked_before:
                asked_before[pair] = cell(a, b)
            return asked_before[pair]

        integers, floats, partners = self._integers, self._floats, self._partners
        parts = self._classes.floats
        # If one part of a complex number is out of range, its fix depends on the other part.
        other_parts = (0.0, _LARGEST) if operation is None else (0.0,)
        reals = [[self._complex(x, other) for x in parts] for other in other_parts]
        imaginaries = [[self._complex(other, x) for x in parts] for other in other_parts]
        runs = _float_runs(self._classes)
        numbers = [
            _Alike(integers, _runs(self._classes.integers.examples)),
            *(_Alike(x, runs) for x in (floats, *reals, *imaginaries)),
        ]
        # Numbers with equal answers may differ with a different partner: repeat until there are no new classes.
        asked_about, new = set[int](), partners
        while new:
            for each in numbers:
                each.ask_with(new, answer)
            asked_about.update(map(id, new))
            new = [operand for each in numbers for operand in each.firsts() if id(operand) not in asked_about]
        of_integer, of_float, *of_parts = (each.first_of_each() for each in numbers)
        half = len(other_parts)
        of_real = _first_of_each(zip(*of_parts[:half], strict=True))
        of_imaginary = _first_of_each(zip(*of_parts[half:], strict=True))
        lines, columns = list(dict.fromkeys(of_real)), list(dict.fromkeys(of_imaginary))
        pairs = [self._complex(parts[x], parts[y]) for x in lines for y in columns]
        sorts_of_numbers = ((integers, of_integer), (floats, of_float), (pairs, list(range(len(pairs)))))
        operands = [*partners, *(each[i] for each, firsts in sorts_of_numbers for i in dict.fromkeys(firsts))]
        decided = [[answer(a, b) for b in operands] for a in operands]
        alone = [cell(a) if operation is None else 0 for a in operands]
        rows, kept = _merged(decided, alone)

        taken = iter(rows[len(partners) :])
        rows_of_numbers: list[list[int]] = []
        for _, firsts in sorts_of_numbers:
            row_of = {first: next(taken) for first in dict.fromkeys(firsts)}
            rows_of_numbers.append([row_of[first] for first in firsts])
        in_order = iter(rows_of_numbers[2])
        return Question(
            named=[rows[sort] for sort in self._sorts],
            integers=rows_of_numbers[0],
            floats=rows_of_numbers[1],
            real=[lines.index(first) for first in of_real],
            imaginary=[columns.index(first) for first in of_imaginary],
            complex=[[next(in_order) for _ in columns] for _ in lines],
            table=[[decided[i][j] for j in kept] for i in kept],
            alone=[alone[i] for i in kept] if operation is None else [],
        )


def _complex(real: float, imaginary: float) -> Operand:
    return as_operand(complex(real, imaginary))


class _Alike:
    """Groups numbers that have all answers in common.

    Rules compare numbers with bounds. If two numbers on one side of zero have the same answer, so has every number
    between them.

    Args:
        operands: the numbers.
        runs: the indices of the numbers, in runs that go away from zero.
    """

    def __init__(self, operands: Sequence[Operand], runs: Iterable[Sequence[int]]) -> None:
        self._operands = operands
        self._runs = [run for run in runs if run]
        self._rows: list[list[int]] = [[] for _ in operands]

    def ask_with(self, partners: Iterable[Operand], answer: Callable[[Operand, Operand], int]) -> None:
        """Decide every number with each partner, in both orders."""
        for partner in partners:
            for swaps in (False, True):
                for run in self._runs:
                    numbers = (self._operands[place] for place in run)
                    calls = [(partner, each) if swaps else (each, partner) for each in numbers]
                    for place, told in zip(run, _along(calls, answer), strict=True):
                        self._rows[place].append(told)

    def first_of_each(self) -> list[int]:
        """For each number, the index of the first one with the same answers."""
        return _first_of_each(map(tuple, self._rows))

    def firsts(self) -> list[Operand]:
        """One number of each group with different answers."""
        return [self._operands[place] for place in dict.fromkeys(self.first_of_each())]


def _first_of_each(answers: Iterable[Hashable]) -> list[int]:
    """For each item, the index of the first one with the same answers."""
    first: dict[Hashable, int] = {}
    return [first.setdefault(each, place) for place, each in enumerate(answers)]


def _along(calls: Sequence[tuple[Operand, Operand]], answer: Callable[[Operand, Operand], int]) -> list[int]:
    """The answers of all calls of a run, found by bisection where they change."""
    told = {place: answer(*calls[place]) for place in (0, len(calls) - 1)}
    todo = [(0, len(calls) - 1)]
    while todo:
        low, high = todo.pop()
        if told[low] == told[high]:
            told |= dict.fromkeys(range(low, high), told[low])
        elif high - low > 1:
            middle = (low + high) // 2
            told[middle] = answer(*calls[middle])
            todo += [(low, middle), (middle, high)]
    return [told[place] for place in range(len(calls))]


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
