"""NumPy's rules before NEP 50 against what NumPy 1.26.4 was measured to do: every cell, both orders, and triples."""

import collections
import functools
import re

import numpy as np

from conformance.departures import DEPARTURES
from conformance.measured import cells, document, triples
from supremum import explain, result_type
from supremum.operands import as_operand
from supremum.rules import NUMPY_LEGACY

MEASURED = document("numpy-legacy")
CODES = MEASURED["codes"]


@functools.cache
def operand(code):
    """`"i8"`, `"i8[300]"` or `"300"`."""
    if code in CODES:
        return as_operand(np.ones(1, CODES[code]))
    zero_d = re.fullmatch(r"(\w+)\[(.*)\]", code)
    value = eval(zero_d[2] if zero_d else code, {"inf": float("inf"), "nan": float("nan"), "nanj": 0})
    with np.errstate(over="ignore"):
        return as_operand(np.array(value, CODES[zero_d[1]]) if zero_d else value)


def ours(operation, *codes):
    decision = NUMPY_LEGACY.decide(operation, [operand(code) for code in codes])
    return str(decision.dtype) if decision else "refused"


def test_the_oracle_is_whole():
    assert MEASURED["version"] == "1.26.4"
    assert MEASURED["scalars_differ"] == 0  # a NumPy scalar is a 0-d array


def test_every_cell_but_the_departures():
    compared, values, covered, unexplained = 0, 0, collections.Counter(), {}
    for (operation, form, left, right), cell in cells(MEASURED["tables"], MEASURED["columns"]):
        if cell == "v":  # of the values, not the types
            values += 1
            continue
        for order in ((left, right), (right, left)) if right else ((left,),):
            theirs = CODES.get(cell, "refused")
            compared += 1
            if (found := ours(operation, *order)) != theirs:
                key = (operation, form, *(order if right else (left, "")), found, theirs)
                rows = [row for row in DEPARTURES if row.rules == "numpy-legacy" and row.operations == operation]
                covered.update(rows)
                if len(rows) != 1:
                    unexplained[key] = len(rows)
    assert unexplained == {}
    assert covered == {row: row.cells for row in DEPARTURES if row.rules == "numpy-legacy"}
    assert (compared, values) == (479374, 532)


def test_every_triple():
    asked = dict(triples(MEASURED["triples"], MEASURED["triple_columns"]))
    assert len(asked) == 27**3
    assert {key: cell for key, cell in asked.items() if ours(None, *key) != CODES[cell]} == {}


def test_values_of_0d_arrays_count_and_are_never_guessed():
    array = np.ones(1, "int8")
    assert [result_type(array, np.int64(value), rules="numpy-legacy") for value in (5, 300, 2**40)] == [
        "int8", "int16", "int64",
    ]  # fmt: skip
    assert result_type(np.ones(1, "int16"), np.ones(1, "int8"), rules="numpy-legacy") == "int16"
    unknown = explain("int8", as_operand("int64").__class__("integer", np.dtype("int64"), ndim=0), rules="numpy-legacy")
    assert not unknown
    assert "looks at the value of int64[]" in unknown.reason[0]
    assert result_type("int64", as_operand(np.int8(3)), rules="numpy-legacy") == "int64"
