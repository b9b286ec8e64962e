"""Read the oracles of tools/extract_oracles.py: calls, what a framework made of them, and what our rules decide."""

import collections
import dataclasses
import functools
import itertools
import json
import pathlib
import string
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from conformance.departures import DEPARTURES, expected_cells
from supremum.formats import as_format
from supremum.operands import WEAK_NAMES, as_operand
from supremum.operations import as_operation
from supremum.rules import get_rules

ORACLES = pathlib.Path(__file__).parent / "oracles"
REFUSED = "refused"
NUMBERS = {"bool()": True, "int*": 1, "float*": 1.0, "complex*": 1j}


def document(framework):
    """The tables measured from a framework."""
    return json.loads((ORACLES / f"{framework}.json").read_text())


def cells(tables, columns):
    """List ((operation, form, left, right), cell); operands are codes, `right` is empty for one operand."""
    columns = columns.split()
    for table in tables:
        for measured in table["measured"]:
            name, form = measured.split()
            for rows, answers in table["rows"].items():
                row_cells = zip(columns, answers.split(), strict=True)
                for row, (column, cell) in itertools.product(rows.split(), row_cells):
                    if cell == ".":
                        continue
                    if name == "unary":
                        yield (as_operation(row).name, form, column, ""), cell
                    else:
                        yield (as_operation(name).name, form, row, column), cell


def triples(rows, columns):
    """List ((a, b, c), cell) of a table of three operands."""
    for pair, answers in rows.items():
        for column, cell in zip(columns.split(), answers.split(), strict=True):
            yield (*pair.split(), column), cell


def number(text):
    """The Python number that a text stands for."""
    if text in ("True", "False"):
        return text == "True"
    return complex(text) if "j" in text else int(text) if text.lstrip("-").isdigit() else float(text)


def operand(name, numbers=NUMBERS):
    """The operand that a name in cells stands for: `"int8"`, `"int8[]"` (0-d), `"int32*"` (weak) or `"int*"`.

    Args:
        name: the name.
        numbers: what stands for Python numbers.
    """
    if name in numbers:
        return as_operand(numbers[name])
    ndim, plain = int(not name.endswith("[]")), name.removesuffix("[]")
    row = as_format(plain.removesuffix("*"), columns=True)
    if plain.endswith("*"):
        return dataclasses.replace(as_operand(row), weak=True, ndim=ndim)
    return as_operand(np.ones((1,) * ndim, row.dtype) if row.is_of_arrays else row)


def fixed_operands(decision, operands):
    """The operands after the casts of a fix, whose code is evaluated, in NumPy's words for the rules of any library."""
    named = dict(zip(string.ascii_lowercase, operands, strict=False))
    codes = decision.fix.spelled_in("", [False] * len(operands)).expressions()
    return [eval(codes.get(name, name), {"np": np} | named) for name in named]


class Comparison:
    """Compares cells with our rules and with the departures, and reports all differences at its end.

    Args:
        rules: the name of the rule set.
        departures: the rows that may explain a difference.
        label: a function that gives the name of an operand in departures.
    """

    def __init__(self, rules, departures, label=str):
        self.rules = rules
        self.label = label
        self.departures = departures
        self.compared = collections.Counter()
        self.skipped = collections.Counter()
        self.covered = collections.Counter()
        self.wrong = []

    def add(self, operation, form, left, right, *, ours, theirs):
        """Compare one cell; the names of several dtypes in `theirs` are separated by `|`."""
        self.compared[form] += 1
        if ours == theirs or ours in theirs.split("|"):
            return
        left, right = self.label(left), self.label(right)
        rows = [row for row in self.departures if row.covers(operation, form, left, right, ours, theirs)]
        self.covered.update(rows)
        if len(rows) != 1:
            why = "no departure covers it" if not rows else f"{len(rows)} departures cover it"
            self.wrong.append(f"{form} {operation}({left}{right and ', '}{right}): {ours}, theirs {theirs}; {why}")

    def check(self):
        """Fail if a cell differs without a departure, or if a departure covers more or fewer cells than it says."""
        expected = expected_cells({row: row.cells for row in self.departures}, self.covered)
        counts = [
            f"a departure covers {self.covered[row]} cells instead of {expected[row]}: {row}"
            for row in self.departures
            if self.covered[row] != expected[row]
        ]
        shown = "\n".join([*self.wrong[:60], *counts])
        assert not shown, f"{len(self.wrong)} cells of {self.rules} differ:\n{shown}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Oracle:
    """The measurements of a framework, and the rule set that is to reproduce them.

    Args:
        rules: the name of the rule set.
        framework: the name of the document.
        mode: the name of the part of the document, if it has parts.
        facts: what the document says about itself.
        forms: how many cells of each form are compared.
        skipped: how many cells of each form are not compared, because a kernel is missing.
        kernels: the reasons of refusals that are not about promotion.
        skips_equal: whether cells without a kernel count as skipped even if our rules refuse them, too.
        numbers: what stands for Python numbers: numbers, or their names if the rules are asked without a value.
        unmeasured: the elementwise operations that were not measured and have no stand-in, because they follow the
            array API standard.
        others: the other operations that were measured.
        triple: the operation of the table of three operands, if the table does not say it.
        triples: how many triples are compared for each operation.
        differing_triples: how many of them differ, by whether our rules refuse and by the framework's answer.
        out_of_range: the signs of refusals because a Python int is out of range.
        valued: how many calls with a Python number are compared.
        valued_differing: how many of these calls differ without a departure, by operation.
    """

    rules: str
    framework: str = ""
    mode: str = ""
    facts: Mapping = field(default_factory=dict)
    forms: Mapping = field(default_factory=dict)
    skipped: Mapping = field(default_factory=dict)
    kernels: tuple = ()
    skips_equal: bool = False
    numbers: Mapping = field(default_factory=lambda: {"bool()": True} | {name: name for name in WEAK_NAMES})
    unmeasured: str = ""
    others: str = "result_type"
    triple: str = "result_type"
    triples: Mapping = field(default_factory=dict)
    differing_triples: Mapping = field(default_factory=dict)
    out_of_range: str = "!"
    valued: int = 0
    valued_differing: Mapping = field(default_factory=dict)

    @property
    def title(self):
        """The name in the names of tests."""
        return self.rules if self.mode else self.framework or self.rules

    @functools.cached_property
    def document(self):
        """The document, or the part for the mode, with the codes and refusals of the document."""
        whole = document(self.framework or self.rules)
        return whole | whole["modes"][self.mode] if self.mode else whole

    @property
    def codes(self):
        return self.document["codes"]

    def full(self, code):
        """Spell out a code: `"f4[]"` becomes `"float32[]"`."""
        plain = code.rstrip("[]*")
        return self.codes[plain] + code.removeprefix(plain) if plain in self.codes else code

    @functools.cached_property
    def _operands(self):
        return {}

    @functools.cached_property
    def _answers(self):
        return {}

    def operand(self, code):
        """The operand that a code stands for."""
        if code not in self._operands:
            self._operands[code] = operand(self.full(code), self.numbers)
        return self._operands[code]

    def label(self, code):
        """The name of an operand in departures."""
        name = self.full(code)
        return name if name in self.numbers else name.removesuffix("*")

    def ours(self, operation, *codes, cell=""):
        """What our rules decide for a cell, remembered because operators and functions ask the same."""
        key = (operation, codes, cell.startswith("("))
        if key not in self._answers:
            self._answers[key] = self._ours(operation, codes, cell)
        return self._answers[key]

    def _ours(self, operation, codes, cell):
        decision = get_rules(self.rules).decide(operation, [self.operand(code) for code in codes if code])
        return self.written(decision, cell) if decision else REFUSED

    def written(self, decision, cell=""):
        """The dtype of an accepted decision, with `*` if it is weak."""
        return str(decision.dtype) + "*" * decision.weak

    def theirs(self, cell):
        """The dtypes in a cell, separated by `|`; those of pandas' methods depend on values."""
        return "|".join(sorted(self._theirs(each) for each in cell.split("|")))

    def _theirs(self, cell):
        if cell in (*self.document["refusals"], *self.out_of_range) or cell.startswith("("):
            return REFUSED
        name = self.full(cell)
        assert name != cell, f"{cell} is neither a code nor a refusal"
        return name

    def cells(self):
        """List ((operation, form, left, right), cell)."""
        return cells(self.document["tables"], self.document["columns"])

    def lacks_kernel(self, cell, ours):
        """Whether a cell says nothing about promotion."""
        is_about_kernels = self.document["refusals"].get(cell) in self.kernels
        return is_about_kernels and (self.skips_equal or ours != REFUSED)

    def departures(self, *forms):
        """The departures of some forms that cover a number of cells."""
        return [row for row in DEPARTURES if row.rules == self.rules and row.form in forms and row.cells]

    def triples_of_operands(self):
        """List (operation, (a, b, c), cell) of all calls with three operands."""
        tables = self.document["triples"]
        if isinstance(tables, dict):
            tables = [{"measured": [self.triple], "rows": tables}]
        for table in tables:
            width = len(next(iter(table["rows"].values())).split())
            columns = " ".join(self.codes) if width == len(self.codes) else self.document["columns"]
            for operation, (codes, cell) in itertools.product(table["measured"], triples(table["rows"], columns)):
                if cell != ".":
                    yield operation.split()[0], codes, cell

    def numbers_of_calls(self):
        """List (left, operation, number, cell, value) of all calls with a Python number on the right.

        The value is the text of what the framework computes; it is empty if the oracle does not have it.
        """
        values = [number(text) for text in self.document.get("numbers", "").split()]
        for key, outcomes in self.document["values"].items():
            left, _, text = key.partition(",")
            for operation, outcome in outcomes.items():
                if text:
                    yield left, operation, number(text), outcome.get("type", outcome.get("refused")), ""
                    continue
                for value, each in zip(values, outcome.split(), strict=True):
                    cell, _, result = each.partition(":")
                    if cell != ".":
                        yield left, operation, value, cell, result
