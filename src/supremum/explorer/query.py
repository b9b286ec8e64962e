"""The answers of one rule set to everything that users can type, with as few decisions as possible."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from supremum.decisions import Decision
from supremum.explorer.answers import OPERATION, Answers
from supremum.explorer.number_classes import SPECIAL, NumberClasses
from supremum.formats import FORMATS, format_names
from supremum.operands import WEAK_NAMES, Operand, as_operand
from supremum.rules import RuleSet, get_rules

_ARRAYS = tuple(map(as_operand, format_names()))
_KINDS = (*map(as_operand, WEAK_NAMES), as_operand(False), as_operand(True))
TYPES: tuple[Operand, ...] = (*_ARRAYS, *_KINDS)
"""The operands of every operation: arrays of each format, the weak kinds, and Python's two bools."""
NAMED: tuple[Operand, ...] = (*TYPES, *(replace(operand, ndim=0) for operand in _ARRAYS))
"""The operands that have a name: `TYPES` and the 0-d arrays."""
_LARGEST = max(float(row.max) for row in FORMATS if row.is_inexact)


@dataclass(frozen=True, slots=True)
class Question:
    """All answers for one operation, or for no particular one.

    Args:
        named, integers, floats: the row in `table` of each operand of `NAMED`, and of each class of numbers.
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
        self._partners, self._sorts = distinct(self._rules, NAMED)
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
        # Numbers with the same answers so far may differ beside another number: repeat until there are no new classes.
        asked_about, new = set[int](), partners
        while new:
            for each in numbers:
                each.ask_beside(new, answer)
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

    def ask_beside(self, partners: Iterable[Operand], answer: Callable[[Operand, Operand], int]) -> None:
        """Ask about every number beside each partner, in both orders."""
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
