"""What is special about tinygrad: values of Python numbers, graphs of reductions, and weak tensors."""

import collections

import numpy as np

from conformance.measured import document, number
from conformance.measured_rules import ORACLE_OF
from supremum import explain, result_type
from supremum.formats import as_format
from supremum.number_conversion import converted
from supremum.rules.tinygrad import TINYGRAD

MEASURED, ARRAYS = ORACLE_OF["tinygrad"], document("tinygrad-arrays")
CODES = MEASURED.codes


def test_numbers_out_of_range_become_what_tinygrad_computes_with_except_departures():
    compared, different, refused = 0, {}, []
    for case, outcomes in MEASURED.document["values"].items():
        dtype, text = case.split(",")
        given = number(text)
        refused += [(case, operation) for operation, outcome in outcomes.items() if "refused" in outcome]
        for operation in ("multiply", "less_than", "equal"):
            decision = explain(dtype, given, operation=operation, rules=TINYGRAD)
            assert str(decision.dtype) == CODES[outcomes[operation]["type"]].removesuffix("*"), (case, operation)
            steps = decision.verdict.number_steps[1]
            becomes = converted(given, steps) if steps else given
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
    assert [case for case, _ in refused] == [case for case in MEASURED.document["values"] if case.endswith(",-1")]
    assert explain("int8", -1, operation="pow", rules=TINYGRAD)
    assert not explain("int8", 1000, operation="less", rules=TINYGRAD).number_changes
    assert str(explain("int8", 1000, operation="add", rules=TINYGRAD).number_changes[0]) == "wraps to -24"
    assert str(explain("bool", 2**32 + 1, operation="equal", rules=TINYGRAD).number_changes[0]) == "wraps to 1"


def test_reductions_accumulate_in_the_dtype_of_tinygrads_graph():
    assert ARRAYS["version"] == MEASURED.document["version"]
    compared = collections.Counter()
    for operation, row in ARRAYS["accumulators"].items():
        for code, cell in zip(CODES, row.split(), strict=True):
            decision = TINYGRAD.decide(operation, [MEASURED.operand(code)])
            if decision:
                compared[operation] += 1
                assert str(decision.casts[0].target) == CODES[cell].removesuffix("*"), (operation, code)
    # The variance of integers is refused: tinygrad computes 0 for that of 1 and 2.
    assert compared == {
        "sum": 19, "prod": 19, "mean": 19, "var": 9, "std": 9, "cumulative_sum": 19, "cumulative_prod": 19,
    }  # fmt: skip


def test_weak_results_stay_weak_until_a_strong_operand_decides():
    weak = explain("int8", 1.5, operation="add", rules=TINYGRAD)
    assert (str(weak.dtype), weak.weak) == ("float32", True)
    assert str(result_type("int8", 1.5, "float16", rules=TINYGRAD)) == "float16"
    assert explain("uint64", "int8", rules=TINYGRAD).weak
    assert not explain(3, 2, operation="divide", rules=TINYGRAD).weak


def test_only_tensors_of_the_same_dtype_are_assigned():
    assert not explain("int8", operation="assign", into="int16", rules=TINYGRAD)
    assert explain("int8", operation="assign", into="int8", rules=TINYGRAD)
    assert explain(True, operation="assign", into="int8", rules=TINYGRAD)
    assert explain("int8", "int16", operation="add", into="int16", rules=TINYGRAD)
    reason = explain(np.ones(2, "int8"), operation="assign", into="int16", rules=TINYGRAD).reason
    assert reason == ("tinygrad assigns only tensors of the same dtype, got int8 for int16",)
    assert as_format("int16").holds(as_format("int8"))
