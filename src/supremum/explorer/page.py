"""The explorer page: its template, style, scripts and packed data.

The data are the decisions of every rule set, and the names of types and operations.
"""

from __future__ import annotations

import base64
import gc
import json
import lzma
import zlib
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.resources import files
from importlib.resources.abc import Traversable
from multiprocessing import active_children, get_context
from typing import Any, NamedTuple

import numpy as np

from supremum.analysis import ALL_TYPES, DIFFERENCES, STANDARD_TYPES, STYLES, difference, short_name
from supremum.decisions import Decision, Verdict
from supremum.errors import UnknownDtypeError, UnknownNameError
from supremum.explorer.answers import TYPES, Answers, Asker, Question, distinct, index
from supremum.explorer.number_classes import NumberClasses, number_classes
from supremum.explorer.packing import packed_tables, packed_texts, steps
from supremum.extras import require
from supremum.formats import COLUMN_FORMATS, FORMATS, Format, Nan, as_format
from supremum.operands import WEAK_NAMES
from supremum.operations import OPERATIONS, TABLED
from supremum.render import PALETTE, icon_link, page_part, sideways_hint
from supremum.rules import FOLLOWS_JAX, HOMES, canonical_name, get_rules
from supremum.signals import without_interrupts
from supremum.version import __version__

Table = tuple[tuple[int, ...], ...]
"""The cell of each pair of operands, row by row."""
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
"""The operators that users can type; they are also decided for numbers and 0-d arrays, which takes longer."""
STEPS = len(HOMES)
"""The number of steps that it takes to gather the data: one for each rule set."""
# Text without alignment: more bits of the previous character as context, and none of the position.
_LZMA = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}
_SHARED_SCRIPTS = ("theme.js", "sideways.js")
_SCRIPTS = ("operands.js", "conversion.js", "answers.js", "grid.js", "explorer.js")
_EXAMPLES = ("uint8, 256", "uint8 + 256", "int8 / uint8", "bfloat16[] float32", "int* float16", "1.5", "2j float64")


def explorer_page(
    on_step: Callable[[str], None] = lambda _: None, *, operations: Sequence[str] = BINARY, processes: int = 1
) -> str:
    """Build a self-contained page to look up the decisions of every rule set; it needs no network.

    Args:
        on_step: called with the name of each rule set when all of its answers are ready, which takes a while.
        operations: the operations to offer; each must take two operands.
        processes: the number of processes to use; with more than one, the main module must be importable.

    Returns:
        The page as HTML.

    Raises:
        UnknownNameError: for an operation that is unknown or does not take two operands.
        MissingPackageError: without Jinja2, which `supremum[cli]` installs.

    >>> explorer_page(operations=["sqrt"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown operation of two operands 'sqrt': choose from ...
    """
    require("The explorer page", "jinja2")
    return page_of(explorer_data(on_step, operations=operations, processes=processes))


def page_of(data: dict[str, Any]) -> str:
    """Build the page of some data.

    Args:
        data: the result of `explorer_data`, or of reading it from JSON.
    """
    require("The explorer page", "jinja2")
    from jinja2 import Environment  # from the extra "cli"

    def own(name: str) -> str:
        return (files("supremum.explorer") / name).read_text("utf-8")

    template = Environment(autoescape=True).from_string(own("template.html.j2"))
    packed = zlib.compress(_as_json(data), 7)  # level 9 saves 2 % and takes four times as long
    return template.render(
        data=base64.b64encode(packed).decode(),
        examples=_EXAMPLES,
        operations=data["operations"],
        palette={style: PALETTE[style] for style in STYLES},
        rules=data["rules"],
        icon=icon_link(),
        script="\n".join([*map(page_part, _SHARED_SCRIPTS), *map(own, _SCRIPTS)]),
        short_names={short: name for name, short, is_standard in data["types"] if is_standard and short != name},
        sideways=sideways_hint(),
        style=page_part("shared.css") + own("explorer.css"),
        styles=STYLES,
        version=__version__,
    )


def _as_json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode()


def packed_data(data: dict[str, Any]) -> bytes:
    """Compress data for a release. LZMA takes a fifth less than Deflate, which browsers need."""
    return lzma.compress(_as_json(data), filters=[_LZMA])


def unpacked_data(packed: bytes) -> dict[str, Any]:
    """Read what `packed_data` has written."""
    return json.loads(lzma.decompress(packed))


def finished_data() -> Traversable:
    """The file of the data that a release contains; a checkout has none, and then the file does not exist.

    The data depend on JAX's flags, which decide what the rules `"jax"` mean, and on the formats that the installed
    ml_dtypes has, so both are part of the name.
    """
    return files("supremum.explorer") / f"finished-{canonical_name(FOLLOWS_JAX)}-{len(FORMATS)}-formats.json.xz"


def finished_page() -> str | None:
    """The page with all operations, from the data of a release; None where there are none."""
    file = finished_data()
    return page_of(unpacked_data(file.read_bytes())) if file.is_file() else None


def explorer_data(
    on_step: Callable[[str], None] = lambda _: None, *, operations: Sequence[str] = BINARY, processes: int = 1
) -> dict[str, Any]:
    """Gather all decisions as plain data for JSON.

    Args:
        on_step: called with the name of each rule set when all of its answers are ready.
        operations: the operations to decide; each must take two operands.
        processes: the number of processes to use; with more than one, the main module must be importable.

    Raises:
        UnknownNameError: for an operation that is unknown or does not take two operands.
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
            with without_interrupts():  # inherited by the workers, which this process ends
                names = {pool.submit(_ask_all, name, operations, classes): name for name in HOMES}
            for future in as_completed(names):
                found[names[future]] = future.result()
                on_step(names[future])
    answers = Answers()
    tables: dict[Table, int] = {}
    rules = [_rules(name, found[name], answers, tables) for name in HOMES]
    dtypes = [dtype for _, dtype, _ in answers.results]
    categories = [as_format(dtype, columns=True).category if dtype else "refused" for dtype in dtypes]
    packed, order = packed_tables(list(tables))
    # The cells get the numbers that the packed tables have for them; after them come those of single operands.
    renumbered: dict[int, int] = {}
    for cell in (*order, *range(len(answers.cells))):
        index(renumbered, cell)
    for each in rules:
        for question in each["questions"].values():
            question["alone"] = [renumbered[cell] for cell in question["alone"]]
    cells = list(answers.cells)
    columns = zip(*(cells[cell] for cell in renumbered), strict=True)
    return {
        "formats": [row.name for row in FORMATS],
        "kinds": [*WEAK_NAMES, "False", "True"],
        "types": [(name, short_name(name), name in STANDARD_TYPES) for name in ALL_TYPES],
        "aliases": _aliases(),
        "conversions": conversions(),
        "operators": OPERATORS,
        "operations": [(name, OPERATIONS[name].result.value) for name in (QUESTION, *operations)],
        "rules": rules,
        "inForce": canonical_name(FOLLOWS_JAX),
        "tables": packed,
        "results": [(*shown, category) for shown, category in zip(answers.results, categories, strict=True)],
        "texts": packed_texts(answers.texts),
        "lossy": sorted(answers.lossy),
        "paths": list(answers.paths),
        "cells": [steps(column) for column in columns],
        # As text, because JSON readers round large integers.
        "numbers": {
            "integers": [str(cut) for cut in classes.integers.cuts],
            "whole": list(classes.whole.cuts),
            "fractional": list(classes.fractional.cuts),
        },
        "differences": {name: tuple(each)[:2] for name, each in DIFFERENCES.items()},
        "differing": _differing(dtypes),
    }


@contextmanager
def _workers(count: int) -> Generator[ProcessPoolExecutor]:
    """A pool of worker processes that end at once if the block raises or Ctrl-C interrupts it."""
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
    """The answers of one rule set.

    Args:
        questions: the answers for everything that users can type, by operation.
        tables: for each operation, the table of all pairs of types.
        answers: the meaning of the cells in both.
    """

    questions: dict[str, Question]
    tables: list[list[list[int]]]
    answers: Answers


def _index_of_table(tables: dict[Table, int], table: list[list[int]], cells: list[int]) -> int:
    """The index of a table after its cells are renumbered; adds the table if it is new."""
    return index(tables, tuple(tuple(cells[cell] for cell in row) for row in table))


def _ask_all(name: str, operations: Sequence[str], classes: NumberClasses) -> _Asked:
    answers = Answers()
    collects = gc.isenabled()
    gc.disable()  # nothing made here becomes garbage, and collecting would take a third of the time
    try:
        asker = Asker(name, classes, answers)
        questions = {QUESTION: asker.question()}
        questions |= {each: asker.question(each) for each in OPERATORS.values() if each in operations}
        return _Asked(questions, [asker.table(each) for each in operations], answers)
    finally:
        if collects:
            gc.enable()


def _rules(name: str, asked: _Asked, answers: Answers, tables: dict[Table, int]) -> dict[str, Any]:
    cells = answers.merge(asked.answers)
    questions = {
        operation: asdict(question)
        | {"table": _index_of_table(tables, question.table, cells), "alone": [cells[cell] for cell in question.alone]}
        for operation, question in asked.questions.items()
    }
    rules = get_rules(name)
    return {
        "name": name,
        "summary": rules.summary,
        "source": rules.source,
        "questions": questions,
        "sorts": distinct(rules, TYPES)[1],
        "operations": [_index_of_table(tables, table, cells) for table in asked.tables],
    }


def _aliases() -> dict[str, str]:
    """The other names of formats: short names, NumPy's names, and its codes."""
    builtin = [np.dtype(code) for code in np.typecodes["AllInteger"] + "?" + np.typecodes["AllFloat"]]
    codes = {code for dtype in builtin for code in (dtype.str[1:], dtype.char)}
    names = {f"{order}{code}" for code in codes for order in ("", "<", ">", "=", "|")}
    named: dict[str, str] = {}
    for name in sorted({*names, *map(str, np.sctypeDict), *(row.short_name for row in FORMATS)}):
        with suppress(UnknownDtypeError):
            named[name] = as_format(name).name
    return {name: format_name for name, format_name in named.items() if name != format_name}


def conversions() -> dict[str, dict[str, Any]]:
    """The properties that determine how a number is converted, by the name of every real format."""
    return {row.name: _conversion(row) for row in (*FORMATS, *COLUMN_FORMATS) if row.component is row}


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
        "negativeZero": row.nan is not Nan.NEGATIVE_ZERO,
    }


def _differing(dtypes: list[str]) -> list[list[int]]:
    """How each result differs from each other, as an index into the differences; -1 if they agree."""
    indices = {None: -1} | {name: index for index, name in enumerate(DIFFERENCES)}
    verdicts = [
        Verdict.accept(as_format(dtype, columns=True).dtype, 1) if dtype else Verdict.refuse() for dtype in dtypes
    ]
    decisions = [Decision("", QUESTION, (), verdict, lambda _: None) for verdict in verdicts]
    return [[indices[difference(left, right)] for right in decisions] for left in decisions]
