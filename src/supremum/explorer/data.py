"""All that the page shows, as plain data: what every rule set decides, and the names for it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from multiprocessing import active_children, get_context
from typing import Any, NamedTuple

import numpy as np

from supremum.analysis import ALL_TYPES, DIFFERENCES, STANDARD_TYPES, difference, short_name
from supremum.decisions import Decision, Verdict
from supremum.errors import UnknownDtypeError, UnknownNameError
from supremum.explorer.answers import Answers
from supremum.explorer.number_classes import NumberClasses, number_classes
from supremum.explorer.query import TYPES, Asker, Question, distinct
from supremum.formats import CATEGORIES, FORMATS, Format, Nan, as_format
from supremum.operands import WEAK_NAMES
from supremum.operations import OPERATIONS, TABLED
from supremum.rules import FOLLOWS_JAX, HOMES, canonical_name, get_rules
from supremum.signals import without_interrupts

QUESTION = "result_type"
BINARY: tuple[str, ...] = ("promote_types", *TABLED)
"""The operations that have a table."""
OPERATORS: dict[str, str] = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "//": "floor_divide",
    "%": "remainder",
    "**": "pow",
    "==": "equal",
    "<": "less",
}
"""What can be typed between two operands, and is answered for numbers and 0-d arrays too, which takes longer."""
STEPS = len(HOMES)
"""How many steps it takes to gather the data: one for each rule set."""


def explorer_data(
    on_step: Callable[[str], None] = lambda _: None, *, operations: Sequence[str] = BINARY, processes: int = 1
) -> dict[str, Any]:
    """Everything that is decided, for JSON.

    Args:
        on_step: called with the name of each rule set when all of its answers are there.
        operations: the operations to decide, all of two operands.
        processes: in how many processes to ask; with more than one, the main module must be importable.

    Raises:
        UnknownNameError: for the name of no operation of two operands.
    """
    for name in operations:
        if name not in BINARY:
            raise UnknownNameError("operation of two operands", name, BINARY)
    classes = number_classes(tuple(HOMES))
    found: dict[str, _Asked] = {}
    if processes == 1:
        for name in HOMES:
            found[name] = _ask_all(name, operations, classes)
            on_step(name)
    else:
        with _workers(processes) as pool:
            with without_interrupts():  # workers inherit it: who starts them ends them
                names = {pool.submit(_ask_all, name, operations, classes): name for name in HOMES}
            for future in as_completed(names):
                found[names[future]] = future.result()
                on_step(names[future])
    answers, tables = Answers(), _Tables()
    rules = [_rules(name, found[name], answers, tables) for name in HOMES]
    return _names(operations) | {
        "rules": rules,
        "inForce": canonical_name(FOLLOWS_JAX),
        "tables": [[_steps(row) for row in table] for table in tables.all],
        "results": [(*shown, _category(shown[1])) for shown in answers.results],
        "texts": answers.texts,
        "paths": answers.paths,
        "cells": [_steps(column) for column in zip(*answers.cells, strict=True)],
        "numbers": _cuts(classes),
        "differences": {name: tuple(each)[:2] for name, each in DIFFERENCES.items()},
        "differing": _differing([shown[1] for shown in answers.results]),
    }


@contextmanager
def _workers(count: int) -> Generator[ProcessPoolExecutor]:
    """Processes that work, and that end at once when the block is left by an error or by Ctrl-C."""
    others = set(active_children())
    pool = ProcessPoolExecutor(count, get_context("spawn"))
    try:
        yield pool
    except BaseException:
        for worker in set(active_children()) - others:
            worker.terminate()
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


class _Asked(NamedTuple):
    """What one rule set answers.

    Args:
        questions: to everything that can be typed, by the operation.
        tables: to two types, for every operation.
        answers: what the cells of these stand for.
    """

    questions: dict[str, Question]
    tables: list[list[list[int]]]
    answers: Answers


class _Tables:
    """Tables of cells, each once."""

    def __init__(self) -> None:
        self._places: dict[tuple[tuple[int, ...], ...], int] = {}

    @property
    def all(self) -> list[tuple[tuple[int, ...], ...]]:
        return list(self._places)

    def place(self, table: list[list[int]], cells: list[int]) -> int:
        """The place of a table, its cells being numbered anew."""
        renumbered = tuple(tuple(cells[cell] for cell in row) for row in table)
        return self._places.setdefault(renumbered, len(self._places))


def _ask_all(name: str, operations: Sequence[str], classes: NumberClasses) -> _Asked:
    answers = Answers()
    collects = gc.isenabled()
    gc.disable()  # all that is made here is kept: to look through it again and again would take a third of the time
    try:
        asker = Asker(name, classes, answers)
        questions = {QUESTION: asker.question()}
        questions |= {each: asker.question(each) for each in OPERATORS.values() if each in operations}
        return _Asked(questions, [asker.table(each) for each in operations], answers)
    finally:
        if collects:
            gc.enable()


def _rules(name: str, asked: _Asked, answers: Answers, tables: _Tables) -> dict[str, Any]:
    cells = answers.merge(asked.answers)
    questions = {
        operation: asdict(question)
        | {"table": tables.place(question.table, cells), "alone": [cells[cell] for cell in question.alone]}
        for operation, question in asked.questions.items()
    }
    rules = get_rules(name)
    return {
        "name": name,
        "summary": rules.summary,
        "source": rules.source,
        "questions": questions,
        "sorts": distinct(rules, TYPES)[1],
        "operations": [tables.place(table, cells) for table in asked.tables],
    }


def _steps(numbers: Sequence[int]) -> list[int]:
    """Numbers as steps from each to the next, the first from 0: neighbours are alike, and steps pack to two thirds."""
    return [after - before for before, after in pairwise((0, *numbers))]


def _names(operations: Sequence[str]) -> dict[str, Any]:
    rows = [OPERATIONS[name] for name in (QUESTION, *operations)]
    return {
        "formats": [row.name for row in FORMATS],
        "kinds": [*WEAK_NAMES, "False", "True"],
        "types": [(name, short_name(name), name in STANDARD_TYPES) for name in ALL_TYPES],
        "aliases": _aliases(),
        "categories": CATEGORIES,
        "conversions": conversions(),
        "operators": OPERATORS,
        "operations": [(row.name, row.result.value) for row in rows],
    }


def _aliases() -> dict[str, str]:
    """Every other name of a format: NumPy's own, and its codes with and without a byte order."""
    codes = {f"{order}{dtype.str[1:]}" for dtype in _builtin() for order in ("", "<", ">", "=", "|")}
    codes |= {f"{order}{dtype.char}" for dtype in _builtin() for order in ("", "<", ">", "=", "|")}
    named = {name: _format_or_none(name) for name in {*codes, *map(str, np.sctypeDict)}}
    return {name: row.name for name, row in sorted(named.items()) if row is not None and name != row.name}


def _builtin() -> list[np.dtype[Any]]:
    return [np.dtype(code) for code in np.typecodes["AllInteger"] + "?" + np.typecodes["AllFloat"]]


def conversions() -> dict[str, dict[str, Any]]:
    """All that the conversion of a number depends on, by the name of every real format."""
    return {row.name: _conversion(row) for row in FORMATS if row.component is row}


def _conversion(row: Format) -> dict[str, Any]:
    if not row.is_inexact:
        return {"bits": 0 if row.category == "bool" else row.bits, "signed": row.signed}
    return {
        "mantissa": row.mantissa,
        "lowest": row.min_exponent,
        "highest": row.max_exponent,
        "max": row.max,
        "beyond": "inf" if row.inf else "max" if row.nan is Nan.NONE else "nan",
        "signed": row.signed,
        "zero": row.zero,
    }


def _format_or_none(name: str) -> Format | None:
    try:
        return as_format(name)
    except UnknownDtypeError:
        return None


def _category(dtype: str) -> str:
    return as_format(dtype).category if dtype else "refused"


def _cuts(classes: NumberClasses) -> dict[str, Any]:
    """Where classes begin. Ints are written in decimal: many are no number of JSON's."""
    return {
        "integers": [str(cut) for cut in classes.integers.cuts],
        "whole": list(classes.whole.cuts),
        "fractional": list(classes.fractional.cuts),
    }


def _differing(dtypes: list[str]) -> list[list[int]]:
    """How each result differs from each, as a place among the differences; -1 where it does not."""
    names = list(DIFFERENCES)
    decisions = [_decision(dtype) for dtype in dtypes]
    found = [[difference(left, right) for right in decisions] for left in decisions]
    return [[-1 if how is None else names.index(how) for how in row] for row in found]


def _decision(dtype: str) -> Decision:
    verdict = Verdict.accept(as_format(dtype).dtype, 1) if dtype else Verdict.refuse()
    return Decision("", QUESTION, (), verdict, lambda _: None)
