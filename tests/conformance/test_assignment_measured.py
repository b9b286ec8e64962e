"""What NumPy 1.26, Paddle, TensorFlow and Keras store, as tools/extract_assignments.py measured it."""

import json
import pathlib

import pytest

from conformance.assignment_judge import NUMBERS, REFUSED, STORED, check
from supremum.operations import as_operation

ORACLES = pathlib.Path(__file__).parent / "oracles"


def _document(framework):
    return json.loads((ORACLES / f"assignment-{framework}.json").read_text())


def _cells(document, part, form):
    """{(operation, into, value): outcome} of what was measured in one form; another dtype is not stored."""
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
                        continue  # of NumPy, without a kernel, or of more dimensions than what it is written into
                    known = cell in codes
                    outcome = STORED if known and codes[cell] == codes[into.removesuffix("[]")] else REFUSED
                    cells[as_operation(operation).name, name_of(into), name_of(value)] = outcome
    return cells


@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", ["in_place", "item"])
def test_numpy_before_nep_50(form):
    document = _document("numpy-legacy")
    check("numpy-legacy", form, _cells(document, document, form))


@pytest.mark.parametrize("form", ["in_place", "operator", "item"])
def test_paddle(form):
    document = _document("paddle")
    check("paddle", form, _cells(document, document, form))


@pytest.mark.parametrize("form", ["variable", "item"])
@pytest.mark.parametrize("mode", ["off", "all", "safe"])
def test_tensorflow(mode, form):
    document = _document("tensorflow")
    check(f"tf-{mode}", form, _cells(document, document["modes"][mode], form))


def test_keras():
    document = _document("keras")
    check("keras", "variable", _cells(document, document, "variable"))
