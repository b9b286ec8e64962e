"""MLX's rules compared with measurements of MLX 0.32.4, cell by cell."""

import collections
import functools
import itertools

import numpy as np
import pytest

from conformance.departures import DEPARTURES
from conformance.measured import cells, document, triples
from supremum import explain
from supremum.formats import FORMATS
from supremum.number_conversion import converted
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE
from supremum.rules.mlx import MLX

MEASURED = document("mlx")
CODES = MEASURED["codes"]
LACKING = set(MLX.stands_in)


@functools.cache
def operand(code):
    return as_operand(True if code == "bool()" else CODES.get(code, code))


def theirs_of(cell):
    return "refused" if cell in MEASURED["refusals"] else CODES[cell]


def ours_for(operation, *codes):
    decision = MLX.decide(operation, [operand(code) for code in codes])
    return str(decision.dtype) if decision else "refused"


def test_oracle_has_the_expected_version_and_cells():
    assert MEASURED["version"] == "0.32.4"
    forms = collections.Counter(form for (_, form, *_), _ in cells(MEASURED["tables"], MEASURED["columns"]))
    assert forms == {"function": 10404, "operator": 5600}
    measured = {operation for (operation, *_), _ in cells(MEASURED["tables"], MEASURED["columns"])}
    assert measured == (ELEMENTWISE.keys() - LACKING) | {"result_type", "diff"}
    assert MEASURED["zero_d"] == {"function": 0, "operator": 0}  # arrays without dimensions count like all others
    assert all(cell in {*CODES, *MEASURED["refusals"]} for _, cell in cells(MEASURED["tables"], MEASURED["columns"]))


def test_dtypes_agree_with_measured_mlx_except_departures():
    compared, covered, unexplained = collections.Counter(), collections.Counter(), {}
    for (operation, form, left, right), cell in cells(MEASURED["tables"], MEASURED["columns"]):
        codes = [code for code in (left, right) if code]
        ours, theirs = ours_for(operation, *codes), theirs_of(cell)
        compared[form] += 1
        if ours != theirs:
            key = (operation, form, CODES.get(left, left), CODES.get(right, right), ours, theirs)
            rows = [row for row in DEPARTURES if row.rules == "mlx" and row.covers(*key)]
            covered.update(rows)
            if len(rows) != 1:
                unexplained[key] = len(rows)
    assert unexplained == {}
    assert covered == {row: row.cells for row in DEPARTURES if row.rules == "mlx"}
    assert compared == {"function": 10404, "operator": 5600}


def test_three_operands_are_folded_from_left_to_right_as_in_mlx():
    compared, by_order = collections.Counter(), set()
    for table in MEASURED["triples"]:
        for measured, (*codes, cell) in itertools.product(table["measured"], triples_of(table)):
            operation = measured.split()[0]
            assert ours_for(operation, *codes) == CODES[cell], (operation, codes)
            compared[operation] += 1
            if operation == "concat" and CODES[cell] != ours_for(operation, *codes[1:], codes[0]):
                by_order.add(frozenset(codes))
    assert compared == {"result_type": 2744, "concat": 2744, "stack": 2744, "clip": 4536}
    # Two types that meet in float32 only, and a float of 16 bits.
    assert by_order == {frozenset(("u8", signed, half)) for signed in ("i1", "i2", "i4", "i8") for half in ("bf", "f2")}


def triples_of(table):
    """List (a, b, c, cell) of the triples that were measured."""
    found = triples(table["rows"], MEASURED["columns"])
    return [(*codes, cell) for codes, cell in found if cell != "."]


def numbers():
    """List (left, operation, number, outcome) of all numbers that were measured."""
    values = [
        complex(text) if "j" in text else float(text) if "." in text or "e" in text else int(text)
        for text in MEASURED["numbers"].split()
    ]
    for left, rows in MEASURED["values"].items():
        for operation, outcomes in rows.items():
            for value, outcome in zip(values, outcomes.split(), strict=True):
                if outcome != ".":
                    yield left, operation, value, outcome


def test_python_numbers_have_the_dtypes_and_values_of_mlx():
    refused = accepted = wrapped = divided = 0
    for left, operation, number, outcome in numbers():
        decision = explain(1 if left == "int*" else CODES[left], number, operation=operation, rules=MLX)
        if outcome in "!-":
            assert not decision, (left, operation, number)
            assert decision.verdict.overflow
            refused += 1
            continue
        code, _, value = outcome.partition(":")
        assert str(decision.dtype) == CODES[code], (left, operation, number)
        accepted += 1
        if operation == "where":
            becomes = converted(number, decision.verdict.number_steps[1])
            assert complex(becomes) == complex(value.replace("True", "1")), (left, number)
            is_told = any("wraps it around silently" in sentence for sentence in decision.reason)
            assert is_told == ("wraps" in [change.how for change in decision.number_changes])
            wrapped += is_told
        if operation == "divide" and code == "f4":
            with np.errstate(divide="ignore"):
                quotient = np.float32(1) / np.float32(converted(number, decision.verdict.number_steps[1]))
            assert quotient == np.float32(value), (left, number)
            divided += 1
    assert (refused, accepted, wrapped, divided) == (352, 743, 6, 122)


@pytest.mark.parametrize("name", [row.name for row in FORMATS if row.name not in CODES.values()])
def test_formats_without_mlx_arrays_are_refused(name):
    for operands in ((name, name), (name, "float32"), (name, 1.0), ("int8", name)):
        decision = explain(*operands, operation="add", rules=MLX)
        assert decision.reason == (f"MLX has no {name} arrays",)
        assert MLX.decide("add", decision.fix.apply(decision.operands))


@pytest.mark.parametrize(
    ("operation", "operands", "reason"),
    [
        ("add", ("uint64", "int8"), "float* is a weak kind, and MLX gives float32"),
        ("add", ("float64", "complex64"), "complex64 is the least upper bound: float64 -> complex* -> complex64"),
        ("add", ("int8", 1.5), "float* counts as float32 next to int8"),
        ("add", ("int8", 1000), "the Python int b is out of range for int8"),
        ("add", ("float16", 2**64), "b does not fit int64, to which MLX converts a Python int"),
        ("add", ("bool", 2**40), "b is out of range for int32, and MLX wraps it around silently"),
        ("add", (1, 2**40), "int* alone counts as int64"),
        ("clip", ("bool", "uint8", 1), "int* counts as int32 next to bool"),
        ("positive", (1,), "MLX's positive needs an array, got Python int"),
        ("clip", (1.0, "int8", "int8"), "MLX's clip needs an array, got Python float"),
        ("solve", ("float16", "float32"), "MLX's solve needs float32 or float64 as first operand, got float16"),
        ("solve", ("float32", "complex64"), "solve does not accept complex operands, got complex64"),
        ("matmul", ("int8", "int8"), "matmul does not accept integer operands, got int8"),
        ("negative", ("bool",), "negative does not accept bool operands, got bool"),
        ("bitwise_left_shift", ("bool", "bool"), "bitwise_left_shift converts bool to uint8"),
        ("vecdot", ("int8", "int8"), "vecdot converts int8 to int32"),
        ("l1_loss", ("complex64", "float32"), "l1_loss of complex64 is float32"),
        ("sum", (np.ones((), "int8"),), "sum returns an array without dimensions as it is, in int8"),
        ("mean", ("int8",), "it is accumulated in int32, and the result is converted to float32"),
        ("hypot", ("int8", "int8"), "MLX has no hypot, so it is decided like atan2"),
    ],
)
def test_reason_names_the_rule_that_decided(operation, operands, reason):
    assert reason in str(explain(*operands, operation=operation, rules=MLX))
