"""What is special about pandas: nullable columns, missing values, and dtypes that depend on values."""

import collections
import itertools
import operator
import re

import numpy as np
import pytest

from conformance.measured import cells, document
from conformance.measured_rules import ORACLE_OF
from optional_packages import import_or_skip
from supremum import explain, explain_cast
from supremum.data_frames import NULLABLE_NAME_OF, NULLABLE_NAMES
from supremum.operands import as_operand
from supremum.rules import get_rules

every_rule_set = pytest.mark.parametrize("rules", ["pandas", "pandas-nullable"])


def test_names_of_nullable_dtypes_are_those_of_pandas():
    mixed = ORACLE_OF["pandas-mixed"].document
    assert (mixed["version"], mixed["numpy"]) == ("3.1.1", "2.4.6")
    assert {mixed["codes"][code]: name for code, name in mixed["formats"].items()} == NULLABLE_NAMES


def test_nullable_operands_alone_are_decided_as_columns_of_the_nullable_rules():
    known, arrays = ORACLE_OF["pandas-nullable"], document("pandas-nullable-arrays")
    asked = {key for key, _ in known.cells()}
    asked |= {key for key, _ in cells(arrays["tables"], arrays["columns"]) if "[]" not in "".join(key)}
    asked |= {("concat", "triple", *codes) for _, codes, _ in known.triples_of_operands()}
    assert len(asked) == 13563
    for operation, _, *codes in sorted(asked):
        plain = [known.operand(code) for code in codes if code]
        flagged = [o if o.is_python_scalar else as_operand(NULLABLE_NAME_OF[o.name]) for o in plain]
        theirs = get_rules("pandas-nullable").decide(operation, plain)
        ours = get_rules("pandas").decide(operation, flagged)
        assert bool(ours) == bool(theirs), (operation, codes)
        assert ours.verdict.compute == theirs.verdict.compute
        # The flag adds the sentence that the result is nullable, or why it is not.
        reason = tuple(sentence.replace(" (nullable)", "") for sentence in ours.reason)
        if ours:
            assert ours.dtype == theirs.dtype, (operation, codes)
            *reason, last = reason
            assert re.search(
                "nullable|skips missing values|makes missing values NaN|missing values, which become NaN", last
            )
        assert [*reason] == [*theirs.reason]


def test_python_numbers_with_nullable_operands_are_decided_as_by_the_nullable_rules():
    compared, measured = 0, ORACLE_OF["pandas-nullable"]
    for code, operation, value, *_ in measured.numbers_of_calls():
        left = measured.full(code)
        theirs = explain(left, value, operation=operation, rules="pandas-nullable")
        ours = explain(NULLABLE_NAME_OF[left], value, operation=operation, rules="pandas")
        assert (ours.result and ours.dtype) == (theirs.result and theirs.dtype)
        assert ours.number_changes == theirs.number_changes
        assert ours.verdict.overflow == theirs.verdict.overflow
        compared += 1
    assert compared == 880


@every_rule_set
def test_concat_of_three_columns_differs_from_two_concats_in_few_triples(rules):
    measured, one_by_one = ORACLE_OF[rules], 0
    code_of = {name: code for code, name in measured.codes.items()}
    for operation, codes, _ in measured.triples_of_operands():
        pair = measured.ours(operation, *codes[:2])
        one_by_one += pair in code_of and measured.ours(operation, *codes) != measured.ours(
            operation, code_of[pair], codes[2]
        )
    assert one_by_one == {"pandas": 14, "pandas-nullable": 4}[rules]


@every_rule_set
def test_where_and_clip_may_keep_the_dtype_of_the_column_by_its_values(rules):
    found = {"where": 0, "clip": 0}
    for (operation, form, left, _), cell in ORACLE_OF[rules].cells():
        if form == "method" and operation in found and "|" in cell:
            assert left in cell.split("|") or rules == "pandas-nullable"
            found[operation] += 1
    assert found == {"pandas": {"where": 61, "clip": 164}, "pandas-nullable": {"where": 62, "clip": 95}}[rules]


@every_rule_set
def test_division_by_zero_may_give_float64(rules):
    measured, different = ORACLE_OF[rules], collections.Counter()
    for operation, rows in measured.document["by_zero"].items():
        for left, row in rows.items():
            for right, cell in zip(measured.codes, row.split(), strict=True):
                if measured.theirs(cell) != measured.ours(operation, left, right):
                    assert measured.full(cell) == "float64"
                    different[operation] += 1
    assert (
        different
        == {
            "pandas": {"floor_divide": 96, "remainder": 64},
            "pandas-nullable": {"floor_divide": 15, "remainder": 8},
        }[rules]
    )


def test_missing_values_change_no_dtype_except_in_the_listed_cells():
    masked = document("pandas-nullable")["masked"]
    integers = "u1=- u2=- u4=- u8=- i1=- i2=- i4=- i8=- f4=- f8=-"
    changed = {
        # The number under the mask is False, and a division by zero gives float64.
        "floor_divide": {"int*": "b1=f8"},
        # pandas cannot convert a missing value to bool.
        "bitwise_and bitwise_or bitwise_xor": {"b1": integers},
    }
    assert masked["operator"] == changed
    # NumPy's `real` and `imag` return arrays instead of columns, which have no mask.
    unary = masked["function"].pop("unary")
    assert masked["function"] == changed
    assert unary.keys() == {"real", "imag"}


@every_rule_set
def test_casts_raise_for_the_values_for_which_astype_raises(rules):
    raising, compared = document(f"{rules}-casts")["raising"], 0
    for pair, texts in raising.items():
        category, target = pair.split()
        for value in map(float.fromhex, texts.split()):
            outcome = explain_cast("float64", target, value, rules=rules)
            assert (category, outcome.becomes, outcome.is_defined) == ("float", (), True)
            assert "raises an error instead of casting" in outcome.reason[0]
            assert "an error" in str(outcome)
            compared += 1
    assert compared == {"pandas": 68, "pandas-nullable": 0}[rules]


@every_rule_set
def test_assignment_does_not_mix_bools_and_numbers(rules):
    for value, into in (("bool", "int8"), (True, "float32"), ("int8", "bool")):
        decision = explain(value, operation="assign", into=into, rules=rules)
        assert "pandas does not store" in str(decision)


@pytest.mark.filterwarnings("ignore")
def test_nullable_columns_with_a_complex_number_give_the_columns_of_pandas():
    pandas, refused = import_or_skip("pandas"), collections.Counter()
    calls = {"divide": "truediv", "less": "lt", "equal": "eq", "subtract": "sub", "multiply": "mul", "remainder": "mod"}
    calls |= {name: name for name in ("add", "pow", "maximum", "arctan2")}
    for (name, call), dtype, is_first in itertools.product(calls.items(), NULLABLE_NAMES, (True, False)):
        column = pandas.Series([1, 1], dtype=dtype)
        operands = (column, 1j) if is_first else (1j, column)
        function = getattr(operator, call, None) or getattr(np, call)
        try:
            result = function(*operands).dtype
            theirs = NULLABLE_NAMES.get(result.name, result.name)
        except TypeError:
            theirs = "refused"
        for rules in ("pandas", "pandas-nullable"):
            decision = explain(*operands, operation=name, rules=rules)
            assert (str(decision.dtype) if decision else "refused") == theirs, (name, dtype, is_first)
            assert decision.result is None or decision.result.nullable == (theirs == "bool")
        refused[name] += theirs == "refused"
    assert [name for name in calls if refused[name]] == ["remainder", "arctan2"]
