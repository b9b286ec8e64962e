"""The array API rules compared with array-api-strict: all pairs of formats and numbers, for every function."""

import itertools

import array_api_strict as xp
import numpy as np
import pytest

from conformance.departures import DEPARTURES
from conformance.measured import fixed_operands
from slowly import for_each
from supremum import explain
from supremum.formats import FORMATS, as_format
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE, OPERATIONS
from supremum.rules.array_api import ARRAY_API

INTEGERS = [f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)]
STANDARD = ["bool", *INTEGERS, "float32", "float64", "complex64", "complex128"]
NUMBERS = {"True": True, "1": 1, "1.0": 1.0, "1j": 1j}
STRICT = {name: xp.zeros((1,), dtype=getattr(xp, name)) for name in STANDARD} | NUMBERS
OURS = {name: as_operand(name) for name in STANDARD} | {name: as_operand(value) for name, value in NUMBERS.items()}
MEASURED = ARRAY_API.measured & ELEMENTWISE.keys()
FUNCTIONS = ["result_type", *sorted(MEASURED - ARRAY_API.stands_in.keys())]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # about divisions of the zeros


@pytest.fixture(autouse=True)
def _standard_version_2024():
    # Choosing an older version than the newest warns, and leaving it set would warn in other tests.
    xp.set_array_api_strict_flags(api_version="2024.12")
    yield
    xp.reset_array_api_strict_flags()


def _theirs(name, *operands):
    function = (lambda a, b: xp.where(xp.asarray(True), a, b)) if name == "where" else getattr(xp, name)
    try:
        result = function(*operands)
    except (TypeError, ValueError, OverflowError):
        return None
    return str(getattr(result, "dtype", result)).removeprefix("array_api_strict.")


def _ours(name, *operands):
    result = ARRAY_API.decide(name, operands).result
    return None if result is None else result.name


CELL_NAMES = {"True": "bool()", "1": "int*", "1.0": "float*", "1j": "complex*"}


@for_each("name", FUNCTIONS)
def test_dtypes_agree_with_array_api_strict_except_departures(name):
    answers_of = {
        operands: (_ours(name, *map(OURS.get, operands)), _theirs(name, *map(STRICT.get, operands)))
        for operands in itertools.product(STRICT, repeat=OPERATIONS[name].arity or 2)
    }
    assert {ours for ours, _ in answers_of.values()} > {None} < {strict for _, strict in answers_of.values()}
    different = {operands: answers for operands, answers in answers_of.items() if answers[0] != answers[1]}
    listed = [row for row in DEPARTURES if row.rules == "array-api" and name in row.operations.split()]
    for operands, answers in different.items():
        cell = [CELL_NAMES.get(operand, operand) for operand in operands]
        assert any(row.covers(name, "function", *cell, *(a or "refused" for a in answers)) for row in listed), operands
    assert len(different) == sum(row.cells // len(row.operations.split()) for row in listed)


def test_stand_ins_are_for_exactly_the_functions_that_the_standard_lacks():
    assert {name for name in MEASURED if not hasattr(xp, name)} == ARRAY_API.stands_in.keys()


def test_formats_are_those_of_the_standard():
    assert {row.name for row in FORMATS if ARRAY_API.decide(None, [as_operand(row)])} == {*STANDARD}


def test_result_type_agrees_with_array_api_strict_for_every_triple():
    # array-api-strict folds pairs and then numbers; in the standard, grouping makes no difference.
    answers_of = {
        triple: (_ours(None, *map(OURS.get, triple)), _theirs("result_type", *map(STRICT.get, triple)))
        for triple in itertools.product(STRICT, repeat=3)
    }
    assert sum(ours is not None for ours, _ in answers_of.values()) > 500
    assert {triple: answers for triple, answers in answers_of.items() if answers[0] != answers[1]} == {}


def test_python_ints_at_the_limits_of_every_format_agree_with_array_api_strict():
    values = {edge + step for name in INTEGERS for edge in _range(name) for step in (-1, 0, 1)}
    values |= {sign * big for sign in (-1, 1) for big in (2**1024 - 2**970 - 1, 2**1024 - 2**970, 10**400)}
    overflows = 0
    for name, value in itertools.product(STANDARD, sorted(values)):
        for function in ("add", "equal", "where", "result_type"):
            strict = _theirs(function, STRICT[name], value)
            assert _ours(function, OURS[name], as_operand(value)) == strict, (function, name, value)
            if strict is None and name != "bool":
                assert ARRAY_API.decide(function, [OURS[name], as_operand(value)]).verdict.overflow
                overflows += 1
    assert overflows == 920


def _range(name):
    return as_format(name).min, as_format(name).max


def test_python_numbers_without_an_array_are_refused():
    for numbers in itertools.product([True, 1, 1.0, 1j, int, float, complex], repeat=2):
        assert not explain(*numbers, rules=ARRAY_API)
        assert not explain(*numbers, operation="add", rules=ARRAY_API)
    assert not explain(1.0, operation="sin", rules=ARRAY_API)


@for_each("name", FUNCTIONS, one_in=8, one_slow_in=4)
def test_fixed_calls_agree_with_array_api_strict(name):
    fixes = 0
    arrays = {name: np.zeros((1,), as_format(name).dtype) for name in STANDARD}
    values = arrays | NUMBERS
    for operands in itertools.product(values, repeat=OPERATIONS[name].arity or 2):
        things = [values[operand] for operand in operands]
        decision = explain(*things, operation=name, rules=ARRAY_API)
        if decision:
            continue
        fixes += 1
        fixed = fixed_operands(decision, things)
        strict = [xp.asarray(thing) if isinstance(thing, np.ndarray) else thing for thing in fixed]
        ours = explain(*fixed, operation=name, rules=ARRAY_API).dtype.name
        assert ours == _theirs(name, *strict), (operands, str(decision.fix))
    assert fixes > 0
