"""Keras' rules compared with measurements of Keras 3.15.1: every cell and every triple."""

import collections
import itertools

from conformance.departures import DEPARTURES
from conformance.measured import cells, document, triples
from supremum import promote_types
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE
from supremum.rules import KERAS

MEASURED = document("keras")
CODES = MEASURED["codes"]
PYTHON = {"bool()": as_operand(True), "int*": as_operand("int*"), "float*": as_operand("float*")}
PYTHON["complex*"] = as_operand("complex*")
OPERANDS = {code: as_operand(name) for code, name in CODES.items()} | PYTHON


def _ours(operation, *codes):
    decision = KERAS.decide(operation, [OPERANDS[code] for code in codes])
    return str(decision.dtype) if decision else "refused"


def _full(code):
    return CODES.get(code, code)


def test_oracle_has_the_expected_version_and_operands():
    assert (MEASURED["version"], MEASURED["backend"], MEASURED["floatx"]) == ("3.15.1", "jax", "float32")
    assert len(OPERANDS) == 21


def test_every_operation_is_measured_or_has_a_stand_in():
    asked = {operation for (operation, *_), _ in cells(MEASURED["tables"], MEASURED["columns"])}
    assert asked.isdisjoint(KERAS.stands_in)  # a measured operation needs no stand-in
    assert asked | (KERAS.stands_in.keys() & ELEMENTWISE.keys()) == {*ELEMENTWISE, "result_type"}


def test_dtypes_agree_with_measured_keras_except_departures():
    compared, unmeasured, covered, unexplained = (collections.Counter() for _ in range(4))
    for (operation, form, left, right), cell in cells(MEASURED["tables"], MEASURED["columns"]):
        theirs = CODES.get(cell, "refused")
        ours = _ours(operation, *filter(None, (left, right)))
        if ours != theirs and MEASURED["refusals"].get(cell) == "no-kernel":
            # JAX lacks some kernels, such as negative for bool and floor for complex; that is not about promotion.
            assert form == "eager"
            unmeasured[operation] += 1
            continue
        compared[form] += 1
        if ours != theirs:
            key = (operation, form, _full(left), _full(right), ours, theirs)
            rows = [row for row in DEPARTURES if row.rules == "keras" and row.covers(*key)]
            covered.update(rows)
            if len(rows) != 1:
                unexplained[key] = len(rows)
    assert unexplained == {}
    assert covered == {row: row.cells for row in DEPARTURES if row.rules == "keras"}
    assert compared == {"function": 441, "symbolic": 13379, "eager": 4017}
    assert unmeasured == {
        "floor_divide": 49, "hypot": 49, "nextafter": 49, "ceil": 2, "floor": 2, "trunc": 2, "signbit": 2,
        "negative": 2, "round": 2, "sign": 2,
    }  # fmt: skip


def test_result_type_of_every_triple_agrees_with_measured_keras():
    asked = dict(triples(MEASURED["triples"], MEASURED["columns"]))
    assert len(asked) == 21**3
    different = {
        key: (ours, cell) for key, cell in asked.items() if (ours := _ours(None, *key)) != CODES.get(cell, "refused")
    }
    assert different == {}


def test_keras_differs_from_jax_x64_in_49_pairs_that_give_64_bits_in_jax():
    strong = [name for name in CODES.values() if not name.startswith("float8")]
    pairs = [*itertools.combinations_with_replacement(strong, 2)]
    differing = [pair for pair in pairs if promote_types(*pair, rules="keras") != promote_types(*pair, rules="jax-x64")]
    # In JAX, all of them give 64 bits: they have a 64-bit operand, or are uint32 with a signed integer. Without one of
    # the narrower signed integers, 44 pairs are left.
    assert len(differing) == 49
    for left_out in ("int8", "int16", "int32"):
        assert len([pair for pair in differing if left_out not in pair]) == 44
    assert {str(promote_types(*pair, rules="jax-x64")) for pair in differing} == {
        "int64", "uint64", "float64", "complex128",
    }  # fmt: skip
