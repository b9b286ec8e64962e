"""TensorFlow's three modes against what TensorFlow 2.21 was measured to do, cell by cell, and every triple."""

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
# An operation's own list of dtypes, and kernels that are missing, say nothing about promotion.
KERNELS = {"no-kernel", "attribute"}
every_mode = pytest.mark.parametrize("mode", MODES)


def _ours(mode, operation, *codes):
    result = get_rules(f"tf-{mode}").decide(operation, [OPERANDS[code] for code in codes if code]).result
    return "refused" if result is None else str(result.dtype) + "*" * result.weak


def _theirs(cell):
    return "refused" if cell in MEASURED["refusals"] else CODES[cell.removesuffix("*")] + "*" * cell.endswith("*")


def _full(code):
    return code if code in PYTHON or not code else CODES[code.removesuffix("*")]


def test_the_oracle_is_whole():
    assert MEASURED["version"] == "2.21.0"
    assert [*MODES] == ["off", "all", "safe"]
    assert {each["zero_dimensional"] for each in MODES.values()} == {0}  # shapes play no part


@every_mode
def test_every_operation_is_measured_or_has_one_that_stands_in(mode):
    tables, stand_ins = MODES[mode]["tables"], get_rules(f"tf-{mode}").stands_in
    asked = {(operation, form) for (operation, form, *_), _ in cells(tables, MODES[mode]["columns"])}
    own, numpy = (
        {operation for operation, form in asked if (form == "numpy") is is_numpy} for is_numpy in (False, True)
    )
    assert own.isdisjoint(stand_ins)  # TensorFlow would have it then
    assert numpy - {"positive"} <= set(stand_ins)
    questions = set() if mode == "off" else {"result_type"}
    assert own | (stand_ins.keys() & ELEMENTWISE.keys()) == ELEMENTWISE.keys() | questions


@pytest.mark.one_in(4)
@every_mode
def test_every_cell_but_the_departures(mode):
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


# Compared, and left out for want of a kernel.
COUNTS = {
    "off": ({"operator": 5558, "function": 9538, "numpy": 779}, {"operator": 22, "function": 59, "numpy": 6}),
    "all": ({"operator": 8982, "function": 15840, "numpy": 1230}, {"operator": 58, "function": 88, "numpy": 10}),
    "safe": ({"operator": 8982, "function": 15840, "numpy": 1230}, {"operator": 58, "function": 88, "numpy": 10}),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mode", ["all", "safe"])
def test_every_triple(mode):
    asked = dict(triples(MODES[mode]["triples"], MODES[mode]["columns"]))
    assert len(asked) == 24**3
    different = collections.Counter(
        (_ours(mode, None, *key) == "refused", cell)
        for key, cell in asked.items()
        if _ours(mode, None, *key) != _theirs(cell)
    )
    # Folded from left to right, as TensorFlow does, SAFE refuses what another order of the same operands is given, and
    # takes integers with floats that do not hold them if a weak float stands between.
    assert different == (
        {}
        if mode == "all"
        else {(False, "d"): 432, (True, "bf"): 8, (True, "f2"): 8, (True, "f4"): 4, (True, "c8"): 12}
    )


@every_mode
def test_numbers_out_of_range_are_taken_as_tensorflow_takes_them(mode):
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
