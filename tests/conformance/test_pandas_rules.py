"""The rules of pandas and of its nullable columns, compared with measurements of pandas 3.1.1, cell by cell."""

import collections
import functools
import re

import pytest

from conformance.departures import DEPARTURES
from conformance.measured import cells, document, triples
from supremum import explain, explain_cast
from supremum.data_frames import NULLABLE_NAME_OF, NULLABLE_NAMES
from supremum.formats import FORMATS, as_format
from supremum.number_conversion import converted
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE
from supremum.rules import get_rules

RULES = ("pandas", "pandas-nullable")
MIXED = document("pandas-mixed")
MEASURED = {rules: document(rules) for rules in RULES}
COMPARED = {
    "pandas": {"function": 9968, "operator": 5600, "method": 546, "mask": 252},
    "pandas-nullable": {"function": 6809, "operator": 3806, "method": 363, "mask": 165},
}
every_rule_set = pytest.mark.parametrize("rules", RULES)


@functools.cache
def operand(rules, code):
    return as_operand(True if code == "bool()" else MEASURED[rules]["codes"].get(code, code))


def ours_for(rules, operation, *codes):
    decision = get_rules(rules).decide(operation, [operand(rules, code) for code in codes])
    return str(decision.dtype) if decision else "refused"


def theirs_of(rules, cell):
    """The dtypes in a cell; those of methods depend on values."""
    return {MEASURED[rules]["codes"].get(code, "refused") for code in cell.split("|")}


def measured_cells(rules):
    """List ((operation, form, left, right), cell)."""
    return cells(MEASURED[rules]["tables"], MEASURED[rules]["columns"])


@every_rule_set
def test_dtypes_agree_with_measured_pandas_except_departures(rules):
    codes = MEASURED[rules]["codes"]
    compared, covered, unexplained = collections.Counter(), collections.Counter(), {}
    for (operation, form, left, right), cell in measured_cells(rules):
        ours, theirs = ours_for(rules, operation, *filter(None, (left, right))), theirs_of(rules, cell)
        compared[form] += 1
        if ours not in theirs:
            key = (operation, form, codes.get(left, left), codes.get(right, right), ours, "|".join(sorted(theirs)))
            rows = [row for row in DEPARTURES if row.rules == rules and row.cells and row.covers(*key)]
            covered.update(rows)
            if len(rows) != 1:
                unexplained[key] = len(rows)
    assert unexplained == {}
    forms = ("operator", "function", "method", "mask")
    assert covered == {row: row.cells for row in DEPARTURES if row.rules == rules and row.cells and row.form in forms}
    assert compared == COMPARED[rules]


def column_for(operation, *names):
    """The name in pandas of the column that our rules give; names with a capital are nullable columns."""
    decision = get_rules("pandas").decide(operation, [as_operand(name) for name in names])
    if not decision:
        return "refused"
    name = str(decision.dtype)
    return NULLABLE_NAME_OF[name] if decision.result.nullable else name


def test_nullable_columns_next_to_columns_of_numpy_agree_with_pandas_except_departures():
    codes = MIXED["codes"]
    compared, covered, unexplained = collections.Counter(), collections.Counter(), {}
    for (operation, form, left, right), cell in cells(MIXED["tables"], MIXED["columns"]):
        ours = column_for(operation, codes[left], codes[right])
        theirs = {codes.get(code, "refused") for code in cell.split("|")}
        compared[form] += 1
        if ours not in theirs:
            operands = (MIXED["formats"].get(code, codes[code]) for code in (left, right))
            key = (operation, f"mixed {form}", *operands, ours, "|".join(sorted(theirs)))
            rows = [row for row in DEPARTURES if row.rules == "pandas" and row.covers(*key)]
            covered.update(rows)
            if len(rows) != 1:
                unexplained[key] = len(rows)
    assert unexplained == {}
    assert covered == {row: row.cells for row in DEPARTURES if row.form.startswith("mixed")}
    assert compared == {"function": 9548, "operator": 5544, "method": 616, "mask": 308}


def test_concat_of_three_columns_of_which_some_are_nullable_agrees_with_pandas():
    codes, compared = MIXED["codes"], 0
    for columns, cell in triples(MIXED["triples"], MIXED["columns"]):
        if cell != ".":
            assert column_for("concat", *(codes[code] for code in columns)) == codes.get(cell, "refused"), columns
            compared += 1
    assert compared == 11550


def test_names_of_nullable_dtypes_are_those_of_pandas():
    assert (MIXED["version"], MIXED["numpy"]) == ("3.1.1", "2.4.6")
    assert {MIXED["codes"][code]: name for code, name in MIXED["formats"].items()} == NULLABLE_NAMES


def test_nullable_operands_alone_are_decided_as_columns_of_the_nullable_rules():
    known = MEASURED["pandas-nullable"]
    arrays = document("pandas-nullable-arrays")
    asked = {key for key, _ in measured_cells("pandas-nullable")}
    asked |= {key for key, _ in cells(arrays["tables"], arrays["columns"]) if "[]" not in "".join(key)}
    asked |= {("concat", "triple", *codes) for codes, _ in triples(known["triples"], " ".join(known["codes"]))}
    assert len(asked) == 13563
    for operation, _, *codes in sorted(asked):
        plain = [operand("pandas-nullable", code) for code in codes if code]
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
        assert tuple(reason) == theirs.reason


def test_python_numbers_with_nullable_operands_are_decided_as_by_the_nullable_rules():
    compared = 0
    for left, operation, value, _ in numbers("pandas-nullable"):
        theirs = explain(left, value, operation=operation, rules="pandas-nullable")
        ours = explain(NULLABLE_NAME_OF[left], value, operation=operation, rules="pandas")
        assert (ours.result and ours.dtype) == (theirs.result and theirs.dtype)
        assert ours.number_changes == theirs.number_changes
        assert ours.verdict.overflow == theirs.verdict.overflow
        compared += 1
    assert compared == 880


@every_rule_set
def test_oracle_has_the_expected_version_and_operations(rules):
    found = MEASURED[rules]
    assert (found["version"], found["numpy"]) == ("3.1.1", "2.4.6")
    lacking = set(get_rules(rules).stands_in)
    measured = {operation for (operation, *_), _ in measured_cells(rules)}
    assert measured == (ELEMENTWISE.keys() - lacking) | {"clip", "concat", "diff"}
    assert set(found["codes"].values()) == get_rules(rules).columns


@every_rule_set
def test_concat_of_three_columns_agrees_with_pandas(rules):
    compared, one_by_one = 0, 0
    for codes, cell in triples(MEASURED[rules]["triples"], " ".join(MEASURED[rules]["codes"])):
        ours = ours_for(rules, "concat", *codes)
        assert {ours} == theirs_of(rules, cell), codes
        compared += 1
        pair = ours_for(rules, "concat", *codes[:2])
        one_by_one += pair != "refused" and ours != ours_for(rules, "concat", pair, codes[2])
    assert (compared, one_by_one) == {"pandas": (2744, 14), "pandas-nullable": (1331, 4)}[rules]


@every_rule_set
def test_where_and_clip_may_keep_the_dtype_of_the_column_by_its_values(rules):
    found = {"where": 0, "clip": 0}
    for (operation, form, left, _), cell in measured_cells(rules):
        if form == "method" and operation in found and "|" in cell:
            assert left in cell.split("|") or rules == "pandas-nullable"
            found[operation] += 1
    assert found == {"pandas": {"where": 61, "clip": 164}, "pandas-nullable": {"where": 62, "clip": 95}}[rules]


@every_rule_set
def test_division_by_zero_may_give_float64(rules):
    codes, different = MEASURED[rules]["codes"], collections.Counter()
    for operation, rows in MEASURED[rules]["by_zero"].items():
        for left, row in rows.items():
            for right, cell in zip(codes, row.split(), strict=True):
                if theirs_of(rules, cell) != {ours_for(rules, operation, left, right)}:
                    assert codes[cell] == "float64"
                    different[operation] += 1
    assert (
        different
        == {
            "pandas": {"floor_divide": 96, "remainder": 64},
            "pandas-nullable": {"floor_divide": 15, "remainder": 8},
        }[rules]
    )


def test_missing_values_change_no_dtype_except_in_the_listed_cells():
    masked = MEASURED["pandas-nullable"]["masked"]
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


def number(text):
    """The Python number that a text stands for."""
    if text in ("True", "False"):
        return int(text == "True")
    return complex(text) if "j" in text else int(text) if text.lstrip("-").isdigit() else float(text)


def numbers(rules):
    """List (left, operation, number, outcome) of all numbers that were measured."""
    values = [number(text) for text in MEASURED[rules]["numbers"].split()]
    for left, rows in MEASURED[rules]["values"].items():
        for operation, outcomes in rows.items():
            for value, outcome in zip(values, outcomes.split(), strict=True):
                yield MEASURED[rules]["codes"][left], operation, value, outcome


@every_rule_set
def test_python_numbers_have_the_dtypes_and_values_of_pandas(rules):
    counts, covered, unexplained = collections.Counter(), collections.Counter(), {}
    for left, operation, given, outcome in numbers(rules):
        decision = explain(left, given, operation=operation, rules=rules)
        code, _, value = outcome.partition(":")
        theirs = MEASURED[rules]["codes"].get(code, "refused")
        ours = str(decision.dtype) if decision else "refused"
        if ours != theirs:
            key = (operation, "number of a method", left, as_operand(type(given)).name, ours, theirs)
            rows = [row for row in DEPARTURES if row.rules == rules and row.cells and row.covers(*key)]
            covered.update(rows)
            if len(rows) != 1:
                unexplained[key] = given
            continue
        counts[theirs == "refused"] += 1
        if outcome == "!" and isinstance(given, int):
            assert decision.verdict.overflow, (left, operation, given)
        if value and operation in ("multiply", "where"):
            becomes = converted(given, decision.verdict.number_steps[1])
            # The product with a complex infinity is not a number in one of its parts.
            assert becomes.real == number(value).real, (left, operation, given)
    assert unexplained == {}
    assert covered == {row: row.cells for row in DEPARTURES if row.rules == rules and row.form == "number of a method"}
    assert counts == {"pandas": {False: 886, True: 201}, "pandas-nullable": {False: 565, True: 311}}[rules]


@every_rule_set
@pytest.mark.parametrize("name", [row.name for row in FORMATS])
def test_formats_without_columns_are_refused(rules, name):
    rule_set = get_rules(rules)
    for operands in ((name, name), (name, "float32"), (name, 1.0), ("int8", name)):
        decision = explain(*operands, operation="add", rules=rules)
        if name in rule_set.columns:
            assert decision
            continue
        assert decision.reason == (f"{rule_set.library} has no {name} columns",)
        if decision.fix is None:
            assert as_format(name).category == "complex"  # nullable columns have no complex numbers, and no real part
            assert rules == "pandas-nullable"
        else:
            assert rule_set.decide("add", decision.fix.apply(decision.operands))


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


@pytest.mark.parametrize(
    ("rules", "operation", "operands", "reason"),
    [
        ("pandas", "divide", ("bool", "bool"), "pandas has no divide of bools"),
        ("pandas", "concat", ("bool", "int8"), "concat of bools and numbers gives a column of objects"),
        ("pandas", "concat", ("uint64", "int8"), "the common type of uint64 and int8 is float64"),
        ("pandas", "bitwise_and", ("bool", "int8"), "the logical operators give bool if an operand is bool"),
        ("pandas", "bitwise_or", ("uint64", "int64"), "bitwise_or has no loop with a safe cast from uint64 and int64"),
        ("pandas", "negative", ("bool",), "negative keeps bool columns"),
        ("pandas", "where", ("int8", 1000), "the common type of int8 and int16 is int16"),
        ("pandas", "where", ("int8", 2**64), "no integer dtype of pandas holds the Python int"),
        ("pandas", "where", ("float32", 1j), "the common type of float32 and complex128 is complex128"),
        ("pandas", "clip", ("int8", 0, 300), "pandas keeps int8 if it holds every value"),
        ("pandas", "add", ("int8", 1000), "the Python int b is out of range for int8"),
        ("pandas", "sum", ("float16",), "sum of float16 is float64"),
        ("pandas", "sum", (1,), "sum needs an array, got Python int"),
        ("pandas", "diff", ("int8",), "the first value of Series.diff is NaN, and the result of int8 is float32"),
        ("pandas", "diff", ("bool",), "Series.diff of bools gives a column of objects"),
        ("pandas-nullable", "diff", ("int8",), "the first value of Series.diff is missing, and the result of int8"),
        ("pandas-nullable", "sqrt", ("int8",), "nullable pandas holds float16 as float32"),
        ("pandas-nullable", "add", ("int8", 1j), "nullable pandas has no complex128 columns"),
        ("pandas-nullable", "bitwise_and", ("bool", 1), "nullable bool columns do not accept a Python int"),
        ("pandas-nullable", "bitwise_xor", ("bool", "int8"), "nullable bool columns convert integers to bool"),
        ("pandas-nullable", "bitwise_xor", ("int8", "bool"), "the logical operators give bool if an operand is bool"),
        ("pandas-nullable", "where", ("int8", "int16"), "pandas keeps int8, and raises for values of int16"),
        ("pandas-nullable", "where", ("int8", True), "pandas does not store a Python bool in a column of int8"),
        ("pandas-nullable", "where", ("int8", 1000), "the Python int 1000 is out of range for int8"),
        ("pandas-nullable", "where", ("float32", "int64"), "pandas keeps the dtype of the column, float32"),
    ],
)  # fmt: skip
def test_reason_names_the_rule_that_decided(rules, operation, operands, reason):
    assert reason in str(explain(*operands, operation=operation, rules=rules))


@every_rule_set
def test_assignment_does_not_mix_bools_and_numbers(rules):
    for value, into in (("bool", "int8"), (True, "float32"), ("int8", "bool")):
        decision = explain(value, operation="assign", into=into, rules=rules)
        assert "pandas does not store" in str(decision)
