"""PyArrow's rules compared with measurements of PyArrow 26.0.1: every cell, every triple, Python numbers and casts."""

import collections
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from conformance.departures import DEPARTURES
from conformance.measured import cells, document, triples
from conformance.test_casts import number
from optional_packages import import_or_skip
from supremum import explain, use_rules
from supremum.formats import FORMATS, as_format
from supremum.number_conversion import converted
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE, REDUCTIONS
from supremum.rules.pyarrow import PYARROW

MEASURED, ARRAYS, CASTS = document("pyarrow"), document("pyarrow-arrays"), document("pyarrow-casts")
CODES = MEASURED["codes"]
# PyArrow has no complex numbers, for which `conj`, `real` and `imag` are.
STANDARD = {"conj", "real", "imag"}


@functools.cache
def operand(code):
    return as_operand(True if code == "bool()" else CODES.get(code, code))


def theirs_of(cell):
    return CODES.get(cell, "refused")


def ours_for(operation, *codes):
    decision = PYARROW.decide(operation, [operand(code) for code in codes if code])
    return str(decision.dtype) if decision else "refused"


def test_oracle_has_the_expected_versions_and_cells():
    assert {MEASURED["version"], ARRAYS["version"], CASTS["version"]} == {"26.0.1"}
    asked = list(cells(MEASURED["tables"], MEASURED["columns"]))
    assert collections.Counter(form for (_, form, *_), _ in asked) == {"function": 7676, "operator": 2424}
    assert all(cell in {*CODES, *MEASURED["refusals"]} for _, cell in asked)
    # Scalars count like arrays, and nulls never change a type.
    assert MEASURED["scalars"] == MEASURED["nulls"] == {"function": 0, "operator": 0}


def test_every_operation_is_measured_or_has_a_stand_in_or_follows_the_standard():
    measured = {operation for (operation, *_), _ in cells(MEASURED["tables"], MEASURED["columns"])}
    stand_ins = PYARROW.stands_in.keys() & ELEMENTWISE.keys()
    assert measured.isdisjoint(stand_ins | STANDARD)
    assert measured | stand_ins | STANDARD == ELEMENTWISE.keys() | {"result_type", "diff"}


def test_dtypes_agree_with_measured_pyarrow_except_departures():
    compared, covered, unexplained = collections.Counter(), collections.Counter(), {}
    for (operation, form, left, right), cell in cells(MEASURED["tables"], MEASURED["columns"]):
        ours, theirs = ours_for(operation, left, right), theirs_of(cell)
        compared[form] += 1
        if ours != theirs:
            key = (operation, form, CODES.get(left, left), CODES.get(right, right), ours, theirs)
            rows = [row for row in DEPARTURES if row.rules == "pyarrow" and row.covers(*key)]
            covered.update(rows)
            if len(rows) != 1:
                unexplained[key] = len(rows)
    assert unexplained == {}
    assert covered == {row: row.cells for row in DEPARTURES if row.rules == "pyarrow" and row.cells}
    assert compared == {"function": 7676, "operator": 2424}


def test_reductions_and_concat_agree_with_measured_pyarrow():
    compared = collections.Counter()
    for (operation, _, left, right), cell in cells(ARRAYS["tables"], ARRAYS["columns"]):
        assert ours_for(operation, left, right) == theirs_of(cell), (operation, left, right)
        compared[operation] += 1
    assert compared.keys() == {*REDUCTIONS, "concat"}
    assert sum(compared.values()) == 312


def test_triples_agree_with_measured_pyarrow_and_only_concat_depends_on_their_order():
    compared, by_order = collections.Counter(), set()
    for table in MEASURED["triples"]:
        for measured, (*codes, cell) in itertools.product(
            table["measured"], [(*codes, cell) for codes, cell in triples(table["rows"], " ".join(CODES))]
        ):
            # `maximum` takes two arrays here, but `clip`, which is decided like it, takes three.
            operation = {"maximum": "clip"}.get(name := measured.split()[0], name)
            assert ours_for(operation, *codes) == theirs_of(cell), (operation, codes)
            compared[operation] += 1
            orders = {ours_for(operation, *order) for order in itertools.permutations(codes)}
            by_order |= {(operation, *sorted(set(codes)))} if len(orders) > 1 else set()
    assert compared == dict.fromkeys(("result_type", "clip", "concat"), 12**3)
    # Two integers that meet in a wider one, and a float that holds each of them.
    assert by_order == {
        ("concat", *each.split()) for each in ("f2 i1 u1", "f2 i1 u2", "f2 i2 u2", "f4 i1 u2", "f4 i2 u2")
    }


def numbers():
    """List (left, operation, number, outcome) of all numbers that were measured."""
    values = [float(text) if "." in text or "e" in text else int(text) for text in MEASURED["numbers"].split()]
    for left, rows in MEASURED["values"].items():
        for operation, outcomes in rows.items():
            for value, outcome in zip(values, outcomes.split(), strict=True):
                yield left, operation, value, outcome


def test_python_numbers_have_the_dtypes_and_values_of_pyarrow():
    counts = collections.Counter()
    for left, operation, value, outcome in numbers():
        decision = explain(1 if left == "int*" else CODES[left], value, operation=operation, rules=PYARROW)
        if outcome == "!":
            assert not decision, (left, operation, value)
            assert decision.verdict.overflow, (left, operation, value)
            counts["refused"] += 1
            continue
        code, _, becomes = outcome.partition(":")
        assert str(decision.dtype) == CODES[code], (left, operation, value)
        assert decision.number_changes == ()
        counts["accepted"] += 1
        if operation == "where":
            assert str(converted(value, decision.verdict.number_steps[1])) == becomes, (left, value)
    assert counts == {"accepted": 668, "refused": 168}


def is_cast_safely(value, source, target):
    """Whether a safe cast accepts a value; it never checks narrower floats, and float16 like a float of the source."""
    if target.category == "integer" and source.category != "bool":
        return math.isfinite(value) and value == int(value) and target.min <= value <= target.max
    if source.category != "integer" or not target.is_inexact:
        return True
    row = as_format(f"float{max(32, source.bits)}") if target.name == "float16" else target
    return abs(value) <= 2 ** (row.mantissa + 1)


def test_safe_casts_raise_for_the_values_that_explanations_name():
    """An operation casts its operands safely, so these are the values for which it raises."""
    counts = collections.Counter()
    for name, row in CASTS["safe"].items():
        source = as_format(name)
        texts = CASTS["values"][source.category].split()
        for other, answers in row.items():
            if answers == "refused":
                assert {name, other} == {"bool", "float16"}
                continue
            for text, cell in zip(texts, answers, strict=True):
                if cell != ".":
                    expected = is_cast_safely(number(text, source.category), source, as_format(other))
                    assert cell == "!="[expected], (name, other, text)
                    counts[cell] += 1
    assert counts == {"=": 3329, "!": 1945}


@pytest.mark.parametrize("library", ["numpy", "jax", "torch"])
def test_quotients_of_integers_are_those_of_pyarrow(library):
    wrap = {"numpy": np, "jax": jnp}.get(library) or import_or_skip(library)
    pairs = [tuple(map(int, pair.split())) for pair in MEASURED["quotients"]]
    with use_rules("pyarrow"), jax.enable_x64(True):
        left, right = (supremum.asarray(wrap.asarray(np.array(side))) for side in zip(*pairs, strict=True))
        quotient = left / right
        assert str(quotient.dtype) == "int64"
        assert [int(each) for each in quotient] == list(MEASURED["quotients"].values())
        assert [[int(each) for each in side] for side in (left[:2] / 2, 7 / left[:2])] == [[3, -3], [1, -1]]


@pytest.mark.parametrize("name", [row.name for row in FORMATS if row.name not in CODES.values()])
def test_formats_without_pyarrow_arrays_are_refused(name):
    for operands in ((name, name), (name, "float32"), (name, 1.0), ("int8", name)):
        decision = explain(*operands, operation="add", rules=PYARROW)
        assert decision.reason == (f"pyarrow has no {name} arrays",)


@pytest.mark.parametrize(
    ("operation", "operands", "reason"),
    [
        ("add", ("int8", "uint64"), "int64 is the least upper bound: int8 -> int16 -> int32 -> int64, uint64 -> int64"),
        ("add", ("uint64", "int64"), "pyarrow raises for uint64 values beyond 9223372036854775807"),
        ("add", ("int32", "float32"), "pyarrow raises for int32 values beyond 16777216"),
        ("add", ("int8", 1), "int* counts as int64"),
        ("add", ("float32", 2**24 + 1), "b is an int that float32 does not hold, and pyarrow raises"),
        ("add", ("int8", 2**63), "b is an int that int64 does not hold, and pyarrow raises"),
        ("add", ("int8", 1j), "pyarrow has no complex* arrays"),
        ("add", ("bool", "int8"), "pyarrow's functions have no common type of bool and int8"),
        ("add", ("bool", "bool"), "add does not accept bool operands, got bool"),
        ("add", ("float16", "float16"), "pyarrow has no add of float16"),
        ("where", ("float16", "float32"), "pyarrow's functions have no common type of float16 and float32"),
        ("concat", ("int16", "float16"), "columns of int16 and float16 are merged in float32"),
        ("concat", ("bool", "int8"), "pyarrow does not merge columns of bool and int8"),
        ("concat", ("int8", 1), "pyarrow's concat needs arrays, got Python int"),
        ("hypot", ("float32", "int8"), "hypot converts int8 to float64"),
        ("floor", ("int8",), "floor converts int8 to float64"),
        ("sign", ("uint64",), "sign of uint64 is int8"),
        ("sum", ("float32",), "sum of float32 is float64"),
        ("sum", ("float16",), "pyarrow has no sum of float16"),
        ("any", ("int8",), "pyarrow has no any of int8"),
        ("copysign", ("float16", "float16"), "pyarrow has no copysign, so it is decided like atan2"),
    ],
)
def test_reason_names_the_rule_that_decided(operation, operands, reason):
    assert reason in str(explain(*operands, operation=operation, rules=PYARROW))


@pytest.mark.parametrize(
    ("value", "into", "stored"),
    [
        ("int8", "int8", True),
        ("int8", "int16", False),
        (1, "int8", True),
        (1000, "int8", False),
        (1.5, "int8", False),
        (True, "int8", False),
        (True, "float32", True),
        (1e300, "float32", False),
        (2**24, "float32", True),
        (2**24 + 1, "float32", False),
        (2**12 + 1, "float16", True),
        (1, "bool", False),
    ],
)
def test_python_numbers_are_stored_as_fill_null_stores_them_if_they_are_in_range(value, into, stored):
    assert bool(explain(value, operation="assign", into=into, rules=PYARROW)) == stored
