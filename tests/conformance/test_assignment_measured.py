"""What the frameworks that are not installed store in arrays, as measured by tools/extract_assignments.py."""

import json
import pathlib

import pytest

from conformance.assignment_judge import NUMBERS, REFUSED, STORED, check
from supremum.operations import as_operation

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


@pytest.mark.parametrize("form", ["in_place", "item"])
def test_mlx_rules_store_what_mlx_stored(form):
    document = _document("mlx")
    check("mlx", form, _cells(document, document, form))


@pytest.mark.parametrize("form", ["in_place", "item"])
@pytest.mark.parametrize("rules", ["pandas", "pandas-nullable"])
def test_pandas_rules_store_what_pandas_stored(rules, form):
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
