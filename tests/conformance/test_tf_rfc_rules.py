"""The three modes of TensorFlow RFC 431 compared with our reading of its tables, cell by cell, and its range checks."""

import itertools
import json
import math
import pathlib
from dataclasses import replace

import numpy as np
import pytest

from conformance.measured import fixed_operands
from slowly import for_each
from supremum import explain, promote_types, result_type
from supremum.decisions import ScalarOverflowError
from supremum.formats import FORMATS, as_format
from supremum.operands import WEAK_NAMES, Operand, as_operand
from supremum.operations import ELEMENTWISE, OPERATIONS, Operation, Result
from supremum.rules.tf_rfc import TF_RFC_ALL, TF_RFC_NONE, TF_RFC_SAFE

_JSON = json.loads((pathlib.Path(__file__).parent / "oracles/tensorflow-rfc-431.json").read_text())
RULES = {"ALL": TF_RFC_ALL, "SAFE": TF_RFC_SAFE, "NONE": TF_RFC_NONE}
PYTHON = {"i*": "int*", "f*": "float*", "c*": "complex*"}
NUMBERS = {"int*": 1, "float*": 1.0, "complex*": 1j}
CELLS = {
    table: {tuple(PYTHON.get(name, name) for name in pair.split(",")): cell for pair, cell in cells.items()}
    for table, cells in _JSON.items()
    if table != "_meta"
}
DTYPES = list(dict.fromkeys(variable for variable, _ in CELLS["assign_add_ALL"]))
NAMES = [*DTYPES, *WEAK_NAMES]
EVERYTHING = [*(row.name for row in FORMATS), *WEAK_NAMES]
# The oracle's error classes, each with the matching part of our reasons.
ERRORS = {
    "no promotion between Tensors": "this mode does not promote between tensors, got {a} and {b}",
    "would be wider than all inputs": "would be wider than all tensors: {a} and {b}",
    "cannot preserve the precision of the inputs": "would not preserve the precision of {a} and {b}",
    "scalar of this kind cannot fit the Tensor dtype": "a Python number must fit the tensor, but ",
    "bool / bool: not covered by the text": "divide does not accept bool operands",
}
every_mode = pytest.mark.parametrize("mode", RULES)


def _answer(decision):
    return None if decision.result is None else str(decision.result)


@every_mode
@pytest.mark.parametrize(("table", "operation"), [("", "add"), ("truediv_", "divide")])
def test_results_and_error_classes_agree_with_all_324_cells(mode, table, operation):
    cells = CELLS[table + mode]
    assert len(cells) == 324
    for (a, b), cell in cells.items():
        decision = explain(a, b, operation=operation, rules=RULES[mode])
        assert _answer(decision) == cell.get("result"), decision
        if operation == "add":
            assert [cast.changes for cast in decision.casts] == [x != cell["result"] for x in (a, b) if decision]
        if "error" in cell:
            (expected,) = [ours for theirs, ours in ERRORS.items() if theirs in cell["error"]]
            assert expected.format(a=a, b=b) in decision.reason[-1], decision
            # The oracle's error "result int16 would be ..." names the dtype that was refused.
            named = cell["error"].split()[1] if cell["error"].startswith("result ") else ""
            assert named in decision.reason[-1], decision


@every_mode
def test_arithmetic_operations_of_the_rfc_share_its_table(mode):
    for pair, cell in CELLS[mode].items():
        for operation in ("add", "subtract", "multiply", "pow", "remainder", None, "promote_types"):
            assert _answer(explain(*pair, operation=operation, rules=RULES[mode])) == cell.get("result")
        assert _answer(explain(*pair, operation="truediv", rules=RULES[mode])) == CELLS[f"truediv_{mode}"][pair].get(
            "result"
        )
        assert explain(*pair, rules=RULES[mode]).weak is False


@every_mode
def test_assign_add_keeps_the_dtype_of_the_variable_or_fails(mode):
    cells = CELLS[f"assign_add_{mode}"]
    assert len(cells) == 15 * 18
    for (variable, value), cell in cells.items():
        decision = explain(variable, value, operation="add", rules=RULES[mode])
        found = decision.result.name if decision.result else None
        assert (found if found == variable else None) == cell.get("result")
        if "error" in cell:
            assert ("differs from the Variable dtype" in cell["error"]) == (found is not None)


@every_mode
def test_python_bools_and_weak_arrays_promote_like_tensors(mode):
    for name in NAMES:
        as_dtype = explain("bool", name, rules=RULES[mode])
        as_number = explain(True, name, rules=RULES[mode])
        assert (as_number.result, as_number.reason) == (as_dtype.result, as_dtype.reason)
        weak = Operand("integer", np.dtype("int32"), weak=True, ndim=0)
        assert explain(weak, name, rules=RULES[mode]).result == explain("int32", name, rules=RULES[mode]).result


@every_mode
def test_formats_are_those_of_the_rfc(mode):
    assert {row.name for row in FORMATS if RULES[mode].decide(None, [as_operand(row)])} == {*DTYPES}


def test_mode_all_promotes_many_tensors_as_numpy_does():
    # NumPy's result_type follows the RFC's rule for any number of operands. NumPy has no bfloat16.
    names = [name for name in DTYPES if name != "bfloat16"]
    for count in (1, 2, 3, 4):
        for dtypes in itertools.combinations_with_replacement(names, count):
            assert result_type(*dtypes, rules=TF_RFC_ALL) == np.result_type(*dtypes), dtypes


@every_mode
def test_reasons_for_more_than_two_operands_name_our_own_reading(mode):
    ours = "the RFC defines promotion of two operands only; Supremum promotes more of them at once"
    assert ours not in explain("int8", 1, rules=RULES[mode]).reason
    for operands in [("int8", "int8", 1), ("uint8", "int8", "float16"), ("int8", 1, 1.5), (1, 2, 3)]:
        assert ours in explain(*operands, rules=RULES[mode]).reason


@for_each(
    "operands, everything, safe",
    [
        (("uint8", "int8", "float16"), "float16", "float16"),
        (("uint8", "int8", "bfloat16", "float16"), "float32", None),
        (("int8", "int16", 1), "int16", "int16"),
        (("int8", 1, 1.0), "float64", None),
        (("bool", 1, 1.0), "float32", None),
        (("float16", 1, 1.0, 1j), "complex64", None),
        (("uint64", "int8", 1), "float64", None),
        ((1, 1.0, 1j), "complex128", "complex128"),
    ],
)
def test_tensors_promote_before_python_numbers(operands, everything, safe):
    for order in itertools.permutations(operands):
        assert _answer(explain(*order, rules=TF_RFC_ALL)) == everything
        assert _answer(explain(*order, rules=TF_RFC_SAFE)) == safe


# --- values


# The smallest float out of range of each dtype: halfway between the largest number and the next power of two. Smaller
# floats round to the largest number.
LIMITS = {"float16": 65520.0, "bfloat16": 2.0**128 - 2.0**119, "float32": 2.0**128 - 2.0**103, "float64": math.inf}
LIMITS |= {"complex64": LIMITS["float32"], "complex128": math.inf}


def _edges(checked, kind):
    """Numbers of a kind at the limits of a dtype: a list of those that fit and a list of those that do not."""
    if checked in LIMITS and kind == "int*":
        least = 2**1024 - 2**970 if LIMITS[checked] == math.inf else int(LIMITS[checked])
        return [0, least - 1, 1 - least], [least, -least, 10**400, -(10**400)]
    if checked in LIMITS:
        least = LIMITS[checked]
        inside = [math.nextafter(least, 0), -math.nextafter(least, 0), 0.1, 5e-324, math.inf, -math.inf, math.nan]
        outside = [x for x in (least, -least, 1.7e308) if least <= abs(x) < math.inf]
        if kind == "float*":
            return inside, outside
        pairs = [(complex(x, 1), complex(1, x)) for x in inside], [(complex(x, 1), complex(1, x)) for x in outside]
        return tuple(list(itertools.chain(*side)) for side in pairs)
    info = np.iinfo(checked)
    return [int(info.min), int(info.max), 0], [int(info.min) - 1, int(info.max) + 1, 10**400, -(10**400)]


@pytest.mark.one_in(2)
@every_mode
def test_python_numbers_must_be_in_range_of_the_dtype_of_every_cell(mode):
    cells = [(pair, cell) for pair, cell in CELLS[mode].items() if "range_check" in cell]
    assert len(cells) == {"ALL": 90, "SAFE": 44, "NONE": 44}[mode]
    for (a, b), cell in cells:
        kind = a if a in WEAK_NAMES else b
        inside, outside = _edges(cell["range_check"], kind)
        for value in inside + outside:
            operands = [value if name == kind else np.zeros(2, name) for name in (a, b)]
            decision = explain(*operands, operation="add", rules=RULES[mode])
            if value in inside or value != value:
                assert str(decision.dtype) == cell["result"], decision
                continue
            with pytest.raises(ScalarOverflowError, match=f"out of range: [ab]; {cell['range_check']} goes from"):
                _ = decision.dtype


@every_mode
def test_examples_in_the_text_of_the_rfc(mode):
    rules = RULES[mode]
    tensor = np.array([1], np.int8)
    assert result_type(tensor, 1, rules=rules) == np.int8
    with pytest.raises(ScalarOverflowError) as caught:
        result_type(tensor, 1000, rules=rules)
    assert isinstance(caught.value, OverflowError)
    assert bool(explain("uint8", 0, rules=rules)) is bool(explain("uint8", 255, rules=rules)) is True
    assert bool(explain("uint8", -1, rules=rules)) is bool(explain("uint8", 256, rules=rules)) is False
    assert result_type(np.zeros(2, np.float16), 65519.9, rules=rules) == np.float16
    for too_large in (70000.0, 70000):
        with pytest.raises(ScalarOverflowError):
            result_type(np.zeros(2, np.float16), too_large, rules=rules)
    # Rounding is not an overflow (D13), and an unknown value counts as in range.
    assert result_type("float16", 2049, rules=rules) == result_type("float16", int, rules=rules) == np.float16
    assert str(promote_types("bfloat16", 0.1, rules=rules)) == "bfloat16"


def test_division_checks_the_range_of_the_integer_dtype_before_converting_to_float():
    assert explain("int8", 100, operation="divide", rules=TF_RFC_ALL).dtype == np.float32
    with pytest.raises(ScalarOverflowError):
        _ = explain("int8", 1000, operation="divide", rules=TF_RFC_ALL).dtype


# --- other operations


@pytest.mark.one_in(2)
@every_mode
def test_binary_operations_follow_the_table_of_the_rfc(mode):
    wider = {"add", "subtract", "multiply", "pow", "remainder"}
    seen = set()
    for row in OPERATIONS.values():
        shape = (row.result, row.accepts, row.name in wider)
        if row.arity != 2 or shape in seen:
            continue
        seen.add(shape)
        for pair, cell in CELLS[mode].items():
            decision = explain(*pair, operation=row.name, rules=RULES[mode])
            promoted = cell.get("result")
            category = as_format(promoted).category if promoted else None
            makes_float = row.result is Result.FLOAT and category == "integer"
            if category is None or not (category in row.accepts or row.name in wider or makes_float):
                assert not decision, decision
            elif row.result is Result.FLOAT:
                assert _answer(decision) == CELLS[f"truediv_{mode}"][pair].get("result")
            else:
                assert _answer(decision) == ("bool" if row.result is Result.BOOL else promoted)
                assert {str(cast.target) for cast in decision.casts} == {promoted}
    assert len(seen) >= 8


@every_mode
def test_unary_operations_follow_the_diagonal_of_the_table(mode):
    components = {"complex64": "float32", "complex128": "float64"}
    for row, name in itertools.product(ELEMENTWISE.values(), NAMES):
        if row.arity != 1 or row.name not in RULES[mode].measured:
            continue
        promoted = CELLS[mode][name, name]["result"]
        if row.result is Result.FLOAT:  # the table of division
            expected = CELLS[f"truediv_{mode}"][name, name].get("result")
        elif as_format(promoted).category not in row.accepts:
            expected = None
        else:
            real = components.get(promoted, promoted)
            expected = {Result.BOOL: "bool", Result.REAL: real, Result.COMMON: promoted}[row.result]
        assert _answer(explain(name, operation=row.name, rules=RULES[mode])) == expected, (row.name, name)


# --- fixes and messages


def _value(name):
    """A Python number or an array, on which the expression of a fix can be evaluated."""
    return NUMBERS[name] if name in NUMBERS else np.zeros(2, name)


@pytest.mark.one_in(10)
@every_mode
@pytest.mark.parametrize("operation", ["add", "divide"])
def test_evaluated_fixes_of_refused_pairs_are_accepted(mode, operation):
    rules, refused = RULES[mode], 0
    values = [_value(name) for name in EVERYTHING] + [True]
    for operands in itertools.product(values, repeat=2):
        decision = explain(*operands, operation=operation, rules=rules)
        if decision:
            continue
        refused += 1
        fixed = fixed_operands(decision, operands)
        after = explain(*fixed, operation=operation, rules=rules)
        assert after, decision
        # A fix never narrows, and it casts arrays to the dtype of mode ALL or to a wider one.
        for before, now in zip(map(as_operand, operands), map(as_operand, fixed), strict=True):
            if before.dtype is not None and before.dtype != now.dtype:
                assert now.format.holds(before.format) or now.format.bits >= 64, decision
        if operation == "add" and all(x.name in DTYPES for x in map(as_operand, operands) if x.dtype is not None):
            assert after.dtype == result_type(*operands, rules=TF_RFC_ALL)
    assert refused > 500


@every_mode
def test_evaluated_fixes_of_numbers_out_of_range_are_accepted(mode):
    rules, refused = RULES[mode], 0
    values = [128, -1, 2**15, -(2**20), 2**31, 2**63, -(2**63) - 1, 70000.0, 1e39, 1e39j, 2**64, 2**200, True]
    for array, value in itertools.product([*map(_value, DTYPES), 1, 1.0, True], values):
        for operands in ((array, value), (value, array)):
            decision = explain(*operands, rules=rules)
            if not decision:
                refused += 1
                assert explain(*fixed_operands(decision, operands), rules=rules), decision
    assert refused > 100
    assert explain("int8", 10**400, rules=rules).fix is None  # no dtype can hold it
    assert explain("float32", 10**400, rules=rules).fix is None


@for_each(
    "operation, operands, fix",
    [
        ("add", ("int8", 1000), "tf.cast(a, 'int16')"),
        ("add", ("uint8", 256), "tf.cast(a, 'uint16')"),
        ("add", ("uint8", -1), "tf.cast(a, 'int16')"),
        ("add", ("uint64", -1), "tf.cast(a, 'float64')"),
        ("add", ("float16", 70000.0), "tf.cast(a, 'float32')"),
        ("add", (2**40, True), "tf.constant(np.asarray(a, 'int64')) and tf.constant(np.asarray(int(b), 'int64'))"),
        ("add", (2**40, 1), "tf.constant(np.asarray(a, 'int64')) and tf.constant(np.asarray(b, 'int64'))"),
        ("add", ("int32", 1.5), "tf.cast(a, 'float64')"),
        ("add", ("float32", 1j), "tf.cast(a, 'complex64')"),
        ("add", ("uint8", "int8"), "tf.cast(a, 'int16') and tf.cast(b, 'int16')"),
        ("add", ("uint64", "float32"), "tf.cast(a, 'float64') and tf.cast(b, 'float64')"),
        ("add", ("int4", "float8_e4m3fn"), "tf.cast(a, 'bfloat16') and tf.cast(b, 'bfloat16')"),
        ("add", ("int4", "int8"), "tf.cast(a, 'int8')"),
        ("divide", (True, "bool"), "tf.cast(b, 'uint8')"),
        ("bitwise_and", ("int64", 2**63), "tf.cast(a, 'uint64')"),
        ("bitwise_and", ("float32", "int8"), "tf.cast(a, 'int32') and tf.cast(b, 'int32')"),
        ("logical_and", ("int8", "bool"), "tf.cast(a, 'bool')"),
        (Operation("float only", 1, Result.COMMON, ("float",)), (int,), "tf.constant(np.asarray(a, 'float64'))"),
        ("less", ("complex64", "float32"), "None"),  # complex numbers have no order, and no cast helps
        ("bitwise_and", ("int8", 1.5), "None"),
    ],
)
def test_fix_casts_to_the_smallest_dtype_that_works(operation, operands, fix):
    rules = TF_RFC_SAFE if isinstance(operation, str) else replace(TF_RFC_SAFE, measured=None)
    assert str(rules.decide(operation, tuple(map(as_operand, operands))).fix) == fix
