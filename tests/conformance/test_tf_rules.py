"""TensorFlow's three modes compared with measurements of TensorFlow 2.21: every cell and every triple."""

import collections
from dataclasses import replace

import pytest

from conformance.departures import DEPARTURES
from conformance.measured import cells, document, triples
from supremum import ScalarOverflowError, explain
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE
from supremum.rules import get_rules

MEASURED = document("tensorflow")
CODES, MODES = MEASURED["codes"], MEASURED["modes"]
STRONG = {code: as_operand(name) for code, name in CODES.items()}
PYTHON = {"bool()": as_operand(True), "int*": as_operand(1), "float*": as_operand(1.0), "complex*": as_operand(1j)}
WEAK = {f"{code}*": replace(operand, weak=True, ndim=1) for code, operand in STRONG.items()}
OPERANDS = STRONG | WEAK | PYTHON
# Refusals because of an operation's own list of dtypes or because of a missing kernel are not about promotion.
KERNELS = {"no-kernel", "attribute"}
every_mode = pytest.mark.parametrize("mode", MODES)


def _ours(mode, operation, *codes):
    result = get_rules(f"tf-{mode}").decide(operation, [OPERANDS[code] for code in codes if code]).result
    return "refused" if result is None else str(result.dtype) + "*" * result.weak


def _theirs(cell):
    return "refused" if cell in MEASURED["refusals"] else CODES[cell.removesuffix("*")] + "*" * cell.endswith("*")


def _full(code):
    return code if code in PYTHON or not code else CODES[code.removesuffix("*")]


def test_oracle_has_the_expected_version_and_modes():
    assert MEASURED["version"] == "2.21.0"
    assert [*MODES] == ["off", "all", "safe"]
    assert {each["zero_dimensional"] for each in MODES.values()} == {0}  # shapes do not matter


@every_mode
def test_every_operation_is_measured_or_has_a_stand_in(mode):
    tables, stand_ins = MODES[mode]["tables"], get_rules(f"tf-{mode}").stands_in
    asked = {(operation, form) for (operation, form, *_), _ in cells(tables, MODES[mode]["columns"])}
    own, numpy = (
        {operation for operation, form in asked if (form == "numpy") is is_numpy} for is_numpy in (False, True)
    )
    assert own.isdisjoint(stand_ins)  # a measured operation needs no stand-in
    assert numpy - {"positive"} <= set(stand_ins)
    questions = set() if mode == "off" else {"result_type"}
    assert own | (stand_ins.keys() & ELEMENTWISE.keys()) == ELEMENTWISE.keys() | questions


@pytest.mark.one_in(4)
@every_mode
def test_dtypes_agree_with_measured_tensorflow_except_departures(mode):
    compared, unmeasured, covered, unexplained = (collections.Counter() for _ in range(4))
    name = f"tf-{mode}"
    for (operation, form, left, right), cell in cells(MODES[mode]["tables"], MODES[mode]["columns"]):
        ours, theirs = _ours(mode, operation, left, right), _theirs(cell)
        if ours != theirs and MEASURED["refusals"].get(cell) in KERNELS:
            unmeasured[form] += 1
            continue
        compared[form] += 1
        if ours != theirs:
            key = (operation, form, _full(left), _full(right), ours, theirs)
            rows = [row for row in DEPARTURES if row.rules == name and row.covers(*key)]
            covered.update(rows)
            if len(rows) != 1:
                unexplained[key] = len(rows)
    assert unexplained == {}
    assert covered == {row: row.cells for row in DEPARTURES if row.rules == name}
    assert (dict(compared), dict(unmeasured)) == COUNTS[mode]


# The number of cells compared, and of cells skipped because a kernel is missing.
COUNTS = {
    "off": ({"operator": 5558, "function": 9538, "numpy": 779}, {"operator": 22, "function": 59, "numpy": 6}),
    "all": ({"operator": 8982, "function": 15840, "numpy": 1230}, {"operator": 58, "function": 88, "numpy": 10}),
    "safe": ({"operator": 8982, "function": 15840, "numpy": 1230}, {"operator": 58, "function": 88, "numpy": 10}),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mode", ["all", "safe"])
def test_result_type_of_triples_agrees_with_measured_tensorflow(mode):
    asked = dict(triples(MODES[mode]["triples"], MODES[mode]["columns"]))
    assert len(asked) == 24**3
    different = collections.Counter(
        (_ours(mode, None, *key) == "refused", cell)
        for key, cell in asked.items()
        if _ours(mode, None, *key) != _theirs(cell)
    )
    # TensorFlow folds from left to right. In mode SAFE it therefore refuses some orders of operands and accepts others,
    # and accepts integers with floats that cannot hold them if a weak float is between them.
    assert different == (
        {}
        if mode == "all"
        else {(False, "d"): 432, (True, "bf"): 8, (True, "f2"): 8, (True, "f4"): 4, (True, "c8"): 12}
    )


@every_mode
def test_numbers_out_of_range_are_accepted_as_in_tensorflow(mode):
    assert len(MODES[mode]["values"]) > 10
    for case, outcomes in MODES[mode]["values"].items():
        dtype, number = case.split(",")
        value = float(number) if "." in number or "e" in number else int(number)
        for operation, outcome in outcomes.items():
            decision = explain(dtype, value, operation=operation, rules=f"tf-{mode}")
            if "type" in outcome:
                assert str(decision.dtype) == CODES[outcome["type"]], (case, operation)
            elif MEASURED["refusals"][outcome["refused"]] in KERNELS:
                assert not decision, (case, operation)
            else:
                assert isinstance(decision.error(), ScalarOverflowError), (case, operation)
