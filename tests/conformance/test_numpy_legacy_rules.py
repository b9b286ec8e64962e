"""NumPy's rules before NEP 50 compared with measurements of NumPy 1.26.4: every cell, both orders, and triples."""

import collections
import functools
import itertools
import re

import numpy as np
import pytest

import supremum
from conformance.departures import DEPARTURES
from conformance.measured import cells, document, triples
from slowly import slow
from supremum import explain, result_type, use_rules
from supremum.formats import FORMATS, is_available
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE
from supremum.rules import NUMPY_LEGACY
from supremum.rules.numpy_loops import FUNCTIONS

MEASURED = document("numpy-legacy")
CODES = MEASURED["codes"]
FUNCTIONS_OF_TWO = [name for name in ELEMENTWISE if name in FUNCTIONS and ELEMENTWISE[name].arity == 2]
ACCEPTED = 26821


@functools.cache
def operand(code):
    """The operand for a code: `"i8"` (an array), `"i8[300]"` (a 0-d array) or `"300"` (a Python number)."""
    if code in CODES:
        return as_operand(np.ones(1, CODES[code]))
    zero_d = re.fullmatch(r"(\w+)\[(.*)\]", code)
    value = eval(zero_d[2] if zero_d else code, {"inf": float("inf"), "nan": float("nan"), "nanj": 0})
    with np.errstate(over="ignore"):
        return as_operand(np.array(value, CODES[zero_d[1]]) if zero_d else value)


@functools.cache
def class_of(code):
    """One number for all operands that have the same key, which the rules therefore do not distinguish."""
    return CLASSES.setdefault(NUMPY_LEGACY.key_of(operand(code)), len(CLASSES))


CLASSES, DECIDED = {}, {}


def ours(operation, *codes):
    known = (operation, *map(class_of, codes))
    if known not in DECIDED:
        decision = NUMPY_LEGACY.decide(operation, [operand(code) for code in codes])
        DECIDED[known] = str(decision.dtype) if decision else "refused"
    return DECIDED[known]


def reversed_cells():
    """The cells {(operation, left, right): cell} that change when the operands are swapped."""
    return {
        (name, left, right): cell
        for names, rows in MEASURED["reversed"].items()
        for name in names.split()
        for left, cells_of_row in rows.items()
        for right, cell in (each.split("=") for each in cells_of_row.split())
    }


def test_oracle_has_the_expected_versions_and_formats():
    assert (MEASURED["version"], MEASURED["ml_dtypes"]) == ("1.26.4", "0.5.4")
    assert MEASURED["scalars_differ"] == 0  # a NumPy scalar is a 0-d array
    assert MEASURED["foreign_values_differ"] == 0  # the value of a 0-d array of an ml_dtypes format plays no part
    measured = {*CODES.values()}
    absent = {row.name for row in FORMATS} - measured
    assert absent == set(filter(is_available, ("int1", "uint1", "complex32", "bcomplex32")))
    for name in absent:
        refused = explain(name, name, rules="numpy-legacy")
        assert refused.reason == (f"ml_dtypes 0.5.4, the last for NumPy 1.26, has no {name}",)


def compared_with_the_oracle(asked):
    """Compare cells of the oracle, in both orders, with our rules.

    Returns:
        How many answers were compared, how many depend on values, the cells of each departure, and the differences
        that match no departure or several.
    """
    compared, values, covered, unexplained = 0, 0, collections.Counter(), {}
    backwards = reversed_cells()
    for (operation, form, left, right), cell in asked:
        if cell == "v":  # the result depends on values
            values += 1
            continue
        orders = {(left, right): cell, (right, left): backwards.get((operation, left, right), cell)}
        for order, answer in orders.items() if right else (((left,), cell),):
            theirs = CODES.get(answer, "refused")
            compared += 1
            if (found := ours(operation, *order)) != theirs:
                key = (operation, form, *(order if right else (left, "")), found, theirs)
                rows = [row for row in DEPARTURES if row.rules == "numpy-legacy" and row.operations == operation]
                covered.update(rows)
                if len(rows) != 1:
                    unexplained[key] = len(rows)
    return compared, values, covered, unexplained


@pytest.mark.exhaustive
def test_dtypes_agree_with_measured_numpy_1_26_except_departures():
    asked = cells(MEASURED["tables"], MEASURED["columns"])
    compared, values, covered, unexplained = compared_with_the_oracle(asked)
    assert unexplained == {}
    assert covered == {row: row.cells for row in DEPARTURES if row.rules == "numpy-legacy"}
    assert (compared, values) == (1057614, 756)


@pytest.mark.parametrize("step", [101, slow(7)])
def test_one_of_many_cells_agrees_with_measured_numpy_1_26(step):
    asked = itertools.islice(cells(MEASURED["tables"], MEASURED["columns"]), 0, None, step)
    compared, _, _, unexplained = compared_with_the_oracle(asked)
    assert unexplained == {}
    assert compared > 1_000_000 / step


@pytest.mark.parametrize("step", [101, slow(11), pytest.param(1, marks=pytest.mark.exhaustive)])
def test_result_type_of_triples_agrees_with_measured_numpy_1_26(step):
    asked = dict(itertools.islice(triples(MEASURED["triples"], MEASURED["triple_columns"]), 0, None, step))
    assert len(asked) == len(range(0, 46**3, step))
    assert {key: cell for key, cell in asked.items() if ours(None, *key) != CODES.get(cell, "refused")} == {}


@pytest.mark.slow
def test_accepted_decisions_name_the_dtype_that_they_compute_in():
    types = [as_operand(name) for name in (*CODES.values(), "int*", "float*", "complex*")]
    accepted = 0
    for operation, *operands in itertools.product(FUNCTIONS_OF_TWO, types, types):
        decision = NUMPY_LEGACY.decide(operation, operands)
        if decision:
            accepted += 1
            reason = " ".join(decision.reason)
            assert not re.search("has no loop|needs a common type|NumPy has n|refused", reason), (operation, reason)
            assert re.search(rf"\b{decision.casts[0].target}\b", reason), (operation, reason)
        else:
            assert re.search("no loop|needs a common type", decision.reason[-1]), (operation, decision.reason)
    assert accepted == ACCEPTED


def test_values_of_0d_arrays_matter_and_unknown_values_are_refused():
    array = np.ones(1, "int8")
    assert [result_type(array, np.int64(value), rules="numpy-legacy") for value in (5, 300, 2**40)] == [
        "int8", "int16", "int64",
    ]  # fmt: skip
    assert result_type(np.ones(1, "int16"), np.ones(1, "int8"), rules="numpy-legacy") == "int16"
    unknown = explain("int8", as_operand("int64").__class__("integer", np.dtype("int64"), ndim=0), rules="numpy-legacy")
    assert not unknown
    assert "promotes by the value of int64[]" in unknown.reason[0]
    assert result_type("int64", as_operand(np.int8(3)), rules="numpy-legacy") == "int64"


def test_large_0d_integer_promotes_with_ml_dtypes_formats_as_long_long():
    # NumPy 1.26.4 with ml_dtypes 0.5.4 gives these answers for the six orders: int4 has no cast to a long long.
    operands = {"a": np.ones(1, "int8"), "n": np.array(2**40), "m": np.ones(1, "int4")}
    answers = {}
    for order in itertools.permutations(operands):
        decision = explain(*(operands[each] for each in order), rules="numpy-legacy")
        answers["".join(order)] = str(decision.dtype) if decision else "refused"
    assert [order for order, answer in answers.items() if answer == "int64"] == ["amn", "man"]
    assert [*answers.values()].count("refused") == 4


def test_integers_are_compared_with_ints_beyond_64_bits_by_value():
    with use_rules("numpy-legacy"):
        for dtype in ("int8", "uint64"):
            array = supremum.asarray(np.array([1, 2], dtype))
            results = [array < 2**64, array > 2**64, array == 2**64, array != -(2**64), array >= -(2**100)]
            assert [[bool(each) for each in result] for result in results] == [
                [each] * 2 for each in (True, False, False, True, True)
            ]
            assert not explain(dtype, 2**64, operation="add")
