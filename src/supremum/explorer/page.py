"""The explorer page: its template, style, scripts and data.

The data are the decisions of every rule set, and the names of types and operations.
"""

from __future__ import annotations

import base64
import gc
import json
import sys
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import numpy as np

from supremum.analysis import ALL_TYPES, DIFFERENCES, STANDARD_TYPES, STYLES, difference, short_name
from supremum.decisions import Decision, Verdict
from supremum.errors import UnknownDtypeError, UnknownNameError
from supremum.explorer.answers import QUESTION, TYPES, Answers, Asker, Table, distinct, index
from supremum.explorer.number_classes import number_classes
from supremum.extras import require
from supremum.formats import COLUMN_FORMATS, FORMATS, Format, Nan, as_format
from supremum.operands import WEAK_NAMES
from supremum.operations import OPERATIONS, TABLED
from supremum.render import PALETTE, icon_link, page_part, sideways_hint
from supremum.rules import FOLLOWS_JAX, HOMES, canonical_name, get_rules
from supremum.version import __version__

BINARY: tuple[str, ...] = ("promote_types", *TABLED)
"""The operations that a page can offer."""
COMMON: tuple[str, ...] = ("add", "divide", "pow", "less", "bitwise_and", "where")
"""The operations that a page offers by default, because all of them would take a minute."""
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
"""The operators that users can type; they are also decided for numbers, which takes longer."""
STEPS = len(HOMES)
"""The number of steps that it takes to gather the data: one for each rule set."""
_SHARED_SCRIPTS = ("theme.js", "sideways.js")
_SCRIPTS = ("operands.js", "conversion.js", "answers.js", "grid.js", "explorer.js")
_EXAMPLES = ("uint8, 256", "uint8 + 256", "int8 / uint8", "bfloat16[] float32", "int* float16", "1.5", "2j float64")


def explorer_page(on_step: Callable[[str], None] = lambda _: None, *, operations: Sequence[str] = COMMON) -> str:
    """Build a self-contained page to look up the decisions of every rule set; it needs no network.

    Args:
        on_step: called with the name of each rule set when all of its answers are ready.
        operations: the operations to offer; each must take two operands, and takes about two seconds.

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
    return _page_of(explorer_data(on_step, operations=operations))


def _page_of(data: dict[str, Any]) -> str:
    from jinja2 import Environment  # from the extra "cli"

    def own(name: str) -> str:
        return (files("supremum.explorer") / name).read_text("utf-8")

    template = Environment(autoescape=True).from_string(own("template.html.j2"))
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    packed = zlib.compress(text.encode(), 7)  # level 9 saves 2 % and takes four times as long
    return template.render(
        data=base64.b64encode(packed).decode(),
        examples=_EXAMPLES,
        operations=data["operations"],
        others=[name for name in BINARY if name not in dict(data["operations"])],
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


def explorer_data(
    on_step: Callable[[str], None] = lambda _: None, *, operations: Sequence[str] = COMMON
) -> dict[str, Any]:
    """Gather all decisions as plain data for JSON.

    Args:
        on_step: called with the name of each rule set when all of its answers are ready.
        operations: the operations to decide; each must take two operands.

    Raises:
        UnknownNameError: for an operation that is unknown or does not take two operands.
    """
    for name in operations:
        if name not in BINARY:
            raise UnknownNameError("operation of two operands", name, BINARY)
    classes = number_classes(tuple(HOMES))
    answers = Answers()
    tables: dict[Table, int] = {}
    collects = gc.isenabled()
    gc.disable()  # nothing made here becomes garbage, and collecting would take a third of the time
    rules: list[dict[str, Any]] = []
    try:
        for name in HOMES:
            rules.append(_rules(name, Asker(name, classes, answers), operations, tables))
            on_step(name)
    finally:
        if collects:
            gc.enable()
    dtypes = [dtype for _, dtype, _ in answers.results]
    categories = [as_format(dtype, columns=True).category if dtype else "refused" for dtype in dtypes]
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
        "tables": list(tables),
        "results": [(*shown, category) for shown, category in zip(answers.results, categories, strict=True)],
        "texts": list(answers.texts),
        "lossy": sorted(answers.lossy),
        "paths": list(answers.paths),
        "cells": list(answers.cells),
        # As text, because JSON readers round large integers.
        "numbers": {
            "integers": [str(cut) for cut in classes.integers.cuts],
            "whole": list(classes.whole.cuts),
            "fractional": list(classes.fractional.cuts),
        },
        "differences": {name: tuple(each)[:2] for name, each in DIFFERENCES.items()},
        "differing": _differing(dtypes),
    }


def _rules(name: str, asker: Asker, operations: Sequence[str], tables: dict[Table, int]) -> dict[str, Any]:
    """The answers of one rule set.

    Args:
        name: its name.
        asker: asks it.
        operations: the operations to decide.
        tables: the different tables, with their indices; adds the new ones.
    """
    rules = get_rules(name)
    asked = {QUESTION: asker.question()}
    asked |= {each: asker.question(each) for each in OPERATORS.values() if each in operations}
    return {
        "name": name,
        "summary": rules.summary,
        "source": rules.source,
        "questions": {
            each: asdict(question) | {"table": index(tables, question.table)} for each, question in asked.items()
        },
        "sorts": distinct(rules, TYPES)[1],
        # The page looks up the other operations in their questions.
        "operations": {each: index(tables, asker.table(each)) for each in operations if each not in asked},
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
        "max": min(row.max, sys.float_info.max),  # the page computes in float64
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
