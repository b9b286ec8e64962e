"""What the frameworks that are not installed store in arrays, as measured by tools/oracles/assignments.py."""

import ast
import itertools
import json
import math
import pathlib

import numpy as np
import pytest

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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", ["in_place", "item"])
def test_numpy_legacy_rules_store_what_numpy_1_26_stored(form):
    document = _document("numpy-legacy")
    check("numpy-legacy", form, _cells(document, document, form))


@pytest.mark.parametrize("form", ["in_place", "operator", "item"])
def test_paddle_rules_store_what_paddle_stored(form):
    document = _document("paddle")
    check("paddle", form, _cells(document, document, form))


@pytest.mark.parametrize("form", ["in_place", "item", "slice", "indices", "mask", "ellipsis"])
def test_mlx_rules_store_what_mlx_stored(form):
    document = _document("mlx")
    check("mlx", form, _cells(document, document, form))


@pytest.mark.parametrize("form", ["in_place", "item"])
@pytest.mark.parametrize("rules", ["pandas", "pandas-nullable"])
def test_pandas_rules_store_what_pandas_stored(rules, form):
    document = _document(rules)
    check(rules, form, _cells(document, document, form))


@for_each("rules, form", itertools.product(["polars", "polars-1"], ["in_place", "item", "indices", "mask", "frame"]))
def test_polars_rules_store_what_polars_stored(rules, form):
    document = _document(rules)
    check(rules, form, _cells(document, document, form))


@pytest.mark.parametrize("form", ["in_place", "item"])
def test_pyarrow_rules_store_what_pyarrow_stored(form):
    document = _document("pyarrow")
    check("pyarrow", form, _cells(document, document, form))


@pytest.mark.parametrize("form", ["variable", "item"])
@pytest.mark.parametrize("mode", ["off", "all", "safe"])
def test_tensorflow_rules_store_what_tensorflow_stored(mode, form):
    document = _document("tensorflow")
    check(f"tf-{mode}", form, _cells(document, document["modes"][mode], form))


@pytest.mark.parametrize("form", ["in_place", "item", "variable"])
def test_tinygrad_rules_store_what_tinygrad_stored(form):
    document = _document("tinygrad")
    check("tinygrad", form, _cells(document, document, form))


def test_keras_rules_store_what_keras_variables_stored():
    document = _document("keras")
    check("keras", "variable", _cells(document, document, "variable"))


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
    document = _document("tensorflow" if rules.startswith("tf-") else rules)
    part = document["modes"][rules.removeprefix("tf-")] if "modes" in document else document
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
