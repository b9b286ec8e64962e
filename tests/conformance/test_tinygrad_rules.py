"""tinygrad's rules compared with measurements of tinygrad 0.14.0: every cell, every triple, and Python numbers."""

import collections
import dataclasses
import itertools

import numpy as np
import pytest

from conformance.departures import DEPARTURES
from conformance.measured import cells, document, triples
from supremum import explain, result_type
from supremum.formats import FORMATS, as_format
from supremum.number_conversion import converted
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE, as_operation
from supremum.rules.tinygrad import TINYGRAD

MEASURED, ARRAYS = document("tinygrad"), document("tinygrad-arrays")
CODES = MEASURED["codes"]
PYTHON = {"bool()": as_operand(True), "int*": as_operand(1), "float*": as_operand(1.0), "complex*": as_operand(1j)}
OPERANDS = PYTHON | {
    code: dataclasses.replace(as_operand(name.removesuffix("*")), weak=name.endswith("*"), ndim=1)
    for code, name in CODES.items()
}
# Operators that tinygrad's tensors do not have; there is a method for `abs`.
UNMEASURED = {sign for sign, reason in MEASURED["refusals"].items() if reason == "no-operator"}


def full(code):
    """The name of an operand in departures, where a weak tensor has the name of its kind."""
    return code if not code or code in PYTHON else OPERANDS[code].name


def ours_for(operation, *codes):
    result = TINYGRAD.decide(operation, [OPERANDS[code] for code in codes if code]).result
    return "refused" if result is None else str(result.dtype) + "*" * result.weak


def theirs_of(cell):
    """The dtype of a cell; a graph that tinygrad does not compute is a refusal."""
    return CODES.get(cell, "refused")


def test_oracle_has_the_expected_version_and_cells():
    assert MEASURED["version"] == ARRAYS["version"] == "0.14.0"
    asked = collections.Counter(form for (_, form, _, _), _ in cells(MEASURED["tables"], MEASURED["columns"]))
    assert asked == {"function": 9804, "operator": 9310}


def test_every_operation_is_measured_or_has_a_stand_in_or_follows_the_standard():
    asked = cells(MEASURED["tables"], MEASURED["columns"])
    measured = {operation for (operation, *_), cell in asked if cell not in UNMEASURED}
    standard = {"logical_and", "logical_or", "logical_xor", "conj", "real", "imag"}
    stand_ins = TINYGRAD.stands_in.keys() & ELEMENTWISE.keys()
    assert measured.isdisjoint(stand_ins | standard)
    assert measured | stand_ins | standard == ELEMENTWISE.keys()


def test_dtypes_agree_with_measured_tinygrad_except_departures():
    compared, unmeasured, covered, unexplained = (collections.Counter() for _ in range(4))
    for (operation, form, left, right), cell in cells(MEASURED["tables"], MEASURED["columns"]):
        if cell in UNMEASURED:
            unmeasured[form] += 1
            continue
        compared[form] += 1
        ours, theirs = ours_for(operation, left, right), theirs_of(cell)
        if ours != theirs:
            key = (operation, form, full(left), full(right), ours, theirs)
            rows = [row for row in DEPARTURES if row.rules == "tinygrad" and row.covers(*key)]
            covered.update(rows)
            if len(rows) != 1:
                unexplained[key] = len(rows)
    assert unexplained == {}
    assert covered == {row: row.cells for row in DEPARTURES if row.rules == "tinygrad" and row.cells}
    assert compared == {"function": 9804, "operator": 9272}
    assert unmeasured == {"operator": 38}  # `abs(t)` and `+t`


def test_result_type_of_all_triples_agrees_with_least_upper_dtype():
    asked = dict(triples(MEASURED["triples"], " ".join(CODES)))
    assert len(asked) == 19**3
    assert {key: cell for key, cell in asked.items() if ours_for("result_type", *key) != theirs_of(cell)} == {}


def test_numbers_out_of_range_become_what_tinygrad_computes_with_except_departures():
    compared, different, refused = 0, {}, []
    for case, outcomes in MEASURED["values"].items():
        dtype, text = case.split(",")
        number = float(text) if "." in text or "e" in text else int(text)
        refused += [(case, operation) for operation, outcome in outcomes.items() if "refused" in outcome]
        for operation in ("multiply", "less_than", "equal"):
            decision = explain(dtype, number, operation=operation, rules=TINYGRAD)
            assert str(decision.dtype) == CODES[outcomes[operation]["type"]].removesuffix("*"), (case, operation)
            steps = decision.verdict.number_steps[1]
            becomes = converted(number, steps) if steps else number
            # The tensor holds 1, or in a bool tensor True.
            ours = {"multiply": becomes, "less_than": becomes > 1, "equal": becomes == 1}[operation]
            theirs = outcomes[operation]["value"]
            compared += 1
            if str(ours) != theirs:
                different[case, operation] = (str(ours), theirs)
    assert compared == 60
    assert different == {
        # 8-bit floats: tinygrad takes the largest number of the format.
        ("float8_e4m3fn,1000", "multiply"): ("nan", "448.0"),
        ("float8_e4m3fn,1000", "less_than"): ("False", "True"),
        ("float8_e5m2,1000000.0", "multiply"): ("inf", "57344.0"),
        ("float8_e4m3fnuz,1000", "multiply"): ("nan", "240.0"),
        ("float8_e4m3fnuz,1000", "less_than"): ("False", "True"),
        ("float8_e5m2fnuz,1000000.0", "multiply"): ("nan", "57344.0"),
        ("float8_e5m2fnuz,1000000.0", "less_than"): ("False", "True"),
        # Bools: tinygrad compares them with the number itself.
        ("bool,4294967297", "less_than"): ("False", "True"),
        ("bool,4294967297", "equal"): ("True", "False"),
    }
    assert {operation for _, operation in refused} == {"pow"}
    assert [case for case, _ in refused] == [case for case in MEASURED["values"] if case.endswith(",-1")]
    assert explain("int8", -1, operation="pow", rules=TINYGRAD)
    assert not explain("int8", 1000, operation="less", rules=TINYGRAD).number_changes
    assert str(explain("int8", 1000, operation="add", rules=TINYGRAD).number_changes[0]) == "wraps to -24"
    assert str(explain("bool", 2**32 + 1, operation="equal", rules=TINYGRAD).number_changes[0]) == "wraps to 1"


def test_reductions_accumulate_in_the_dtype_of_tinygrads_graph():
    compared = collections.Counter()
    for operation, row in ARRAYS["accumulators"].items():
        for code, cell in zip(CODES, row.split(), strict=True):
            decision = TINYGRAD.decide(operation, [OPERANDS[code]])
            if decision:
                compared[operation] += 1
                assert str(decision.casts[0].target) == CODES[cell].removesuffix("*"), (operation, code)
    # The variance of integers is refused: tinygrad computes 0 for that of 1 and 2.
    assert compared == {
        "sum": 19, "prod": 19, "mean": 19, "var": 9, "std": 9, "cumulative_sum": 19, "cumulative_prod": 19,
    }  # fmt: skip


@pytest.mark.slow
def test_pairs_commute():
    for operation, (a, b) in itertools.product(ELEMENTWISE.values(), itertools.combinations(OPERANDS, 2)):
        if operation.arity == 2:
            assert ours_for(operation, a, b) == ours_for(operation, b, a), (operation.name, a, b)


@pytest.mark.parametrize("name", [row.name for row in FORMATS if row.name not in CODES.values()])
def test_formats_without_tinygrad_tensors_are_refused(name):
    for operands in ((name, name), (name, "float32"), (name, 1.0), ("int8", name)):
        decision = explain(*operands, operation="add", rules=TINYGRAD)
        assert decision.reason == (f"tinygrad has no {name} tensors",)


def test_weak_results_stay_weak_until_a_strong_operand_decides():
    weak = explain("int8", 1.5, operation="add", rules=TINYGRAD)
    assert (str(weak.dtype), weak.weak) == ("float32", True)
    assert str(result_type("int8", 1.5, "float16", rules=TINYGRAD)) == "float16"
    assert explain("uint64", "int8", rules=TINYGRAD).weak
    assert [str(result_type(*pair, rules=TINYGRAD)) for pair in [(1,), (True, 1), (1, 2.0)]] == [
        "int32", "int32", "float32",
    ]  # fmt: skip
    assert not explain(3, 2, operation="divide", rules=TINYGRAD).weak


@pytest.mark.one_in(6)
@pytest.mark.parametrize("operation", ["add", "divide", "bitwise_and", "bitwise_left_shift", "logical_and", "solve"])
def test_rules_accept_the_operands_after_the_fix_of_every_refusal(operation):
    refused = 0
    names = [*(row.name for row in FORMATS), *PYTHON]
    for a, b in itertools.product(names, repeat=2):
        operands = [PYTHON.get(name) or as_operand(name) for name in (a, b)]
        decision = TINYGRAD.decide(as_operation(operation), operands)
        if decision or decision.fix is None:
            continue
        refused += 1
        assert TINYGRAD.decide(as_operation(operation), decision.fix.apply(decision.operands)), (a, b)
    assert refused > 100


@pytest.mark.parametrize(
    ("operation", "operands", "reason"),
    [
        (
            "add",
            ("int32", "float16"),
            "float16 is the least upper bound: int32 -> int64 -> float* -> float8_e4m3fn -> float16",
        ),
        ("add", ("float8_e4m3fn", "float8_e5m2"), "float16 and bfloat16 are the smallest upper bounds, and tinygrad"),
        ("add", ("uint64", "int8"), "float* is a weak kind and has dtype float32 unless an operand is strong"),
        ("divide", ("int8", "int8"), "divide converts int8 to float32"),
        ("acos", ("int8",), "acos converts int8 to float*"),
        ("floor_divide", ("bool", "bool"), "floor_divide converts bool to float32"),
        ("less", ("float16", "bfloat16"), "less always gives bool"),
        ("fmax", ("float16", 1.0), "tinygrad has no fmax, so it is decided like maximum"),
        ("bitwise_and", ("int8", "float16"), "bitwise_and does not accept float operands, got float16"),
        ("bitwise_left_shift", ("bool", "bool"), "bitwise_left_shift does not accept bool operands, got bool"),
        ("sum", ("uint8",), "sum of uint8 is uint32"),
        (
            "sum",
            ("float8_e5m2",),
            "it is accumulated in float32 and rounded once: `sum_acc_dtype` in tinygrad/dtype.py",
        ),
        ("var", ("int8",), "tinygrad has no var of int8"),
        ("add", ("int8", 1j), "tinygrad has no complex* tensors"),
    ],
)
def test_reason_names_the_rule_that_decided(operation, operands, reason):
    assert reason in str(explain(*operands, operation=operation, rules=TINYGRAD))


def test_only_tensors_of_the_same_dtype_are_assigned():
    assert not explain("int8", operation="assign", into="int16", rules=TINYGRAD)
    assert explain("int8", operation="assign", into="int8", rules=TINYGRAD)
    assert explain(True, operation="assign", into="int8", rules=TINYGRAD)
    assert explain("int8", "int16", operation="add", into="int16", rules=TINYGRAD)
    reason = explain(np.ones(2, "int8"), operation="assign", into="int16", rules=TINYGRAD).reason
    assert reason == ("tinygrad assigns only tensors of the same dtype, got int8 for int16",)
    assert as_format("int16").holds(as_format("int8"))
