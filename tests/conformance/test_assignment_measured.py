"""What the frameworks that are not installed store in arrays, as measured by tools/oracles/assignments.py."""

import ast
import json
import math
import pathlib

import numpy as np

from conformance.assignment_judge import NUMBERS, REFUSED, STORED, check, operand
from slowly import for_each
from supremum.operands import as_operand
from supremum.operations import as_operation
from supremum.rules import get_rules

ORACLES = pathlib.Path(__file__).parent / "oracles"


def _document(framework):
    return json.loads((ORACLES / f"assignment-{framework}.json").read_text())


def _cells(document, part, form):
    """The cells {(operation, into, value): outcome} of one form; a result with a different dtype counts as refused."""
    codes = document["codes"]

    def name_of(code):
        return code if code in NUMBERS else codes[code.removesuffix("[]")] + "[]" * code.endswith("[]")

    cells, columns = {}, part["columns"].split()
    for table in part["tables"]:
        for operation in (each.split()[0] for each in table["measured"] if each.split()[1] == form):
            for into, row in table["rows"].items():
                for value, cell in zip(columns, row.split(), strict=True):
                    without = into.endswith("[]"), value.endswith("[]") or value in NUMBERS
                    if value.startswith("np.") or cell == "n" or without == (True, False):
                        continue  # a NumPy scalar, a missing kernel, or more dimensions than the target
                    known = cell in codes
                    outcome = STORED if known and codes[cell] == codes[into.removesuffix("[]")] else REFUSED
                    cells[as_operation(operation).name, name_of(into), name_of(value)] = outcome
    return cells


FORMS = {
    "numpy-legacy": "in_place item",
    "paddle": "in_place operator item",
    "mlx": "in_place item slice indices mask ellipsis",
    "pandas": "in_place item",
    "pandas-nullable": "in_place item",
    "polars": "in_place item indices mask frame",
    "polars-1": "in_place item indices mask frame",
    "pyarrow": "in_place item",
    "tf-off": "variable item",
    "tf-all": "variable item",
    "tf-safe": "variable item",
    "tinygrad": "in_place item variable",
    "keras": "variable",
}
"""The ways to store a value that were measured for the framework of each rule set."""


def _measurements(rules):
    """The document of a rule set's framework, and the part that is about its mode."""
    document = _document("tensorflow" if rules.startswith("tf-") else rules)
    return document, document["modes"][rules.removeprefix("tf-")] if "modes" in document else document


@for_each("rules, form", [(rules, form) for rules, forms in FORMS.items() for form in forms.split()])
def test_rules_store_what_the_framework_stored(rules, form):
    check(rules, form, _cells(*_measurements(rules), form))


def _numbers(rules, part):
    """List (form, dtype, number, dtype and value after the write) of the Python numbers that the rules store."""
    for key, outcomes in part["values"].items():
        name, text = key.split(",")
        number = math.inf if text == "inf" else ast.literal_eval(text)
        if get_rules(rules).decide("assign", [as_operand(number)], operand(name)):
            for operation, form in (measured.split() for measured in outcomes):
                if operation == "assign":
                    yield form, name, number, outcomes[f"{operation} {form}"].get("value", "refused nan")


STORED_NUMBERS = {
    "keras": 27, "mlx": 51, "numpy-legacy": 27, "paddle": 27, "pandas": 21, "pandas-nullable": 10, "polars": 58,
    "polars-1": 48, "pyarrow": 15, "tf-off": 24, "tf-all": 22, "tf-safe": 22, "tinygrad": 19,
}  # fmt: skip


@for_each("rules", STORED_NUMBERS)
def test_frameworks_keep_the_value_of_every_number_that_the_rules_store(rules):
    """They neither wrap it around nor make it null; only `a[...] = number` in MLX changes a dtype."""
    _, part = _measurements(rules)
    kept, changed = 0, set()
    for form, name, number, shown in _numbers(rules, part):
        dtype, value = shown.split()
        held = complex({"True": 1, "False": 0, "null": math.nan}.get(value, value))
        if dtype == name and held == np.asarray(number).astype(name):
            kept += 1
        else:
            changed.add((form, name, number, dtype))
    in_ellipsis = {("ellipsis", "complex64", number, "float32") for number in (1.5, 70000.0, math.inf)}
    assert changed == (in_ellipsis if rules == "mlx" else set())
    assert kept == STORED_NUMBERS[rules]
