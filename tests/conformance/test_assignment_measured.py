"""What the frameworks that are not installed store in arrays, as measured by tools/oracles/assignments.py."""

import ast
import math

import numpy as np

from conformance.assignment_judge import REFUSED, STORED, check
from conformance.measured import NUMBERS, cells, document, operand
from slowly import for_each
from supremum.operands import as_operand
from supremum.rules import get_rules


def _cells(whole, part, form):
    """The cells {(operation, into, value): outcome} of one form; a result with a different dtype counts as refused."""
    codes = whole["codes"]

    def name_of(code):
        return code if code in NUMBERS else codes[code.removesuffix("[]")] + "[]" * code.endswith("[]")

    found = {}
    for (operation, its_form, into, value), cell in cells(part["tables"], part["columns"]):
        without = into.endswith("[]"), value.endswith("[]") or value in NUMBERS
        if its_form != form or value.startswith("np.") or cell == "n" or without == (True, False):
            continue  # a NumPy scalar, a missing kernel, or more dimensions than the target
        is_stored = cell in codes and codes[cell] == codes[into.removesuffix("[]")]
        found[operation, name_of(into), name_of(value)] = STORED if is_stored else REFUSED
    return found


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
    found = document(f"assignment-{'tensorflow' if rules.startswith('tf-') else rules}")
    return found, found["modes"][rules.removeprefix("tf-")] if "modes" in found else found


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
