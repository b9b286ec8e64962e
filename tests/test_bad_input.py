"""Bad input raises only errors of this library, in a hundred thousand calls in `make exhaustive`."""

import collections
import datetime as dt
import decimal
import enum
import fractions
import math
import subprocess
import sys

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import supremum
from slowly import slow
from supremum import (
    Decision,
    OperandError,
    PromotionError,
    ScalarOverflowError,
    SupremumError,
    UnknownDtypeError,
    UnknownNameError,
    can_promote,
    explain,
    nn,
    promote_types,
    result_type,
)
from supremum.errors import ArgumentError, shown
from supremum.formats import FORMATS, ColumnDtype
from supremum.mixed_precision import DynamicLossScale, Policy, autocast
from supremum.operations import OPERATIONS
from supremum.optimizers import Adam
from supremum.rules import NUMPY, TORCH, rule_names
from supremum.training import load_arrays, save_arrays


class Colour(enum.IntEnum):
    RED = 1


class Thing:
    """An object with any attributes."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Unhashable:
    __hash__ = None


class NeverEqual:
    def __eq__(self, other):
        raise ArithmeticError

    __hash__ = None


class Broken:
    @property
    def dtype(self):
        raise RuntimeError("no dtype today")


class BrokenShape:
    dtype = np.dtype("int8")

    @property
    def ndim(self):
        raise ValueError("no shape today")


class MyFloat(float):
    pass


class MyArray(np.ndarray):
    pass


GOOD = [
    *(row.name for row in FORMATS), "int*", "float*", "complex*", "f32", "<i2", ">f8", "|u1",
    *(row.dtype for row in FORMATS),
    *(np.zeros((1, 2), row.dtype) for row in FORMATS),
    *(np.zeros((), row.dtype) for row in FORMATS),
    np.zeros(2, ">i4"), np.zeros(2).view(MyArray), np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    np.ma.masked,
    *(np.float64(1), np.int8(3), np.bool_(True), ml_dtypes.bfloat16(2), np.str_("int8"), np.float64("nan")),
    *(jnp.ones(2, "bfloat16"), jnp.asarray(1), jnp.asarray(2.5), jax.ShapeDtypeStruct((2,), np.dtype("int16"))),
    *(0, 1, -1, 127, 128, 255, 256, 2**31, 2**63, 2**64, -(2**63) - 1, 10**40, 10**400, -(10**5000)),
    *(0.0, -0.0, 1.5, 1e38, 1e39, -1e308, 5e-324, math.inf, -math.inf, math.nan, True, False),
    *(1j, complex(math.inf, math.nan), complex(1e300, 1), -0j),
    *(int, float, complex, bool, np.float32, np.int64, ml_dtypes.float8_e5m2, jnp.bfloat16, jnp.int4),
    *(Thing(dtype=np.dtype("int8"), ndim=2), Thing(dtype="float32", ndim=0)),
]  # fmt: skip
NOT_NAMES = [
    "", " ", "int9", "flaot32", "int", "float", "f4,f4", "S3", "M8[s]", "object", "\0", "\x01", "=\x0b", "a", "a3",
    "i" * 5000, "ünï", "float32[]",
    "(2,)f4", "{", "'", "complex64*",
]  # fmt: skip
JUNK = [
    Thing(dtype=np.dtype("int8")),
    [], [1, 2], [np.zeros(2)], (), (1,), None, {}, {"dtype": "int8"}, {1, 2}, frozenset(), object(), b"int8",
    bytearray(b"i4"), Colour.RED, Colour, decimal.Decimal("1.5"), fractions.Fraction(1, 3), dt.date(2020, 1, 1),
    range(3), slice(3), NotImplemented, Ellipsis, print, len, lambda x: x, str, list, object, type, Exception, np,
    np.add, np.generic, np.floating, np.str_, np.datetime64, np.object_, np.array(["a"]), np.array([b"a"]),
    np.zeros(2, "M8[s]"), np.zeros(2, "m8[ms]"), np.zeros(1, "i4,f4"), np.zeros(1, object), np.dtype("i4,f4"),
    np.dtype("M8[D]"), np.dtype(("i4", (2,))), np.dtype("O"), np.dtype("V3"), np.longdouble(1),
    np.zeros(2, np.longdouble), np.clongdouble, np.datetime64("2020-01-01"), np.zeros(2, "i4,f4").view(np.recarray),
    memoryview(b"ab"), MyFloat(2.5), Unhashable(), Unhashable, NeverEqual(), Broken(), Broken, BrokenShape(), Thing(),
    Thing(dtype=None), Thing(dtype=object(), ndim=1), Thing(dtype=[], ndim=1), Thing(dtype="nonsense", ndim=1),
    Thing(dtype=3, ndim=1), Thing(dtype=Unhashable(), ndim=1), Thing(dtype=NeverEqual(), ndim=1),
    Thing(dtype=np.dtype("O"), ndim=1), Thing(dtype=list, ndim=0), Thing(dtype=Broken(), ndim=1), Thing(ndim=2),
    Thing(dtype=lambda: None, ndim=None), Thing(dtype=Colour.RED, ndim=1), jax.random.key(0), jnp.add,
]  # fmt: skip
RULES = [*rule_names(), None, None, NUMPY, TORCH]
BAD_RULES = ["", "jx", "nunpy", 3, b"numpy", object(), (), [], {}, np.zeros(2), Unhashable(), NUMPY.decide, type(NUMPY)]
OPERATION_VALUES = [*OPERATIONS, "truediv", "power", "left_shift", None, None, OPERATIONS["add"]]
BAD_OPERATIONS = ["", "ad", "Add", 3, b"add", object(), (), [], {}, np.zeros(2), Unhashable(), print]
ARGUMENTS = [*GOOD, *NOT_NAMES, *JUNK]
RULE_CHOICES, OPERATION_CHOICES = [*RULES * 3, *BAD_RULES], [*OPERATION_VALUES, *BAD_OPERATIONS]
OWN_ERRORS = {OperandError, UnknownDtypeError, UnknownNameError, PromotionError, ScalarOverflowError, ArgumentError}
FUNCTIONS = [result_type, promote_types, explain, can_promote]


def _call(function, arguments, rules, operation):
    if function is promote_types:
        arguments = (arguments * 2 or ["int8", "int8"])[:2]  # promote_types takes exactly two operands
    named = {"operation": operation} if function in (explain, can_promote) else {}
    return function(*arguments, rules=rules, **named)


@pytest.mark.parametrize(
    ("position", "function"),
    [(0, result_type), (1, result_type), (2, explain), (1, promote_types), (3, can_promote)],
)
def test_junk_raises_a_type_error_with_the_argument_position(position, function):
    assert issubclass(OperandError, TypeError)
    wrong = []
    for place, junk in enumerate(JUNK):
        arguments = ["int8", "float32", 1, 2.5][: position + 1]
        arguments[position] = junk
        try:
            answer = function(*arguments)
        except Exception as error:
            if not isinstance(error, OperandError) or not str(error).startswith(f"argument {position} must be "):
                wrong.append(f"JUNK[{place}] of {type(junk)}: {error!r}")
        else:
            wrong.append(f"JUNK[{place}] of {type(junk)} gives {answer}")
    assert wrong == []


@pytest.mark.parametrize("name", NOT_NAMES)
def test_an_unknown_dtype_error_shows_the_name(name):
    for function in (result_type, explain, can_promote):
        with pytest.raises(UnknownDtypeError, match="unknown dtype") as caught:
            function("int8", name)
        assert isinstance(caught.value, TypeError)
        assert shown(name) in str(caught.value)
        assert caught.value.name == name


@pytest.mark.parametrize("rules", BAD_RULES, ids=lambda rules: type(rules).__name__)
def test_invalid_rules_raise_unknown_name_error(rules):
    for function in FUNCTIONS:
        for arguments in (("int8", "int8"), (np.zeros(2), np.zeros(2))):
            with pytest.raises(UnknownNameError, match="unknown rule set"):
                function(*arguments, rules=rules)


@pytest.mark.parametrize("operation", BAD_OPERATIONS, ids=lambda operation: type(operation).__name__)
def test_invalid_operations_raise_unknown_name_error(operation):
    for function in (explain, can_promote):
        with pytest.raises(UnknownNameError, match="unknown operation"):
            function("int8", "int8", operation=operation)


def test_valid_operands_are_accepted_by_some_rules():
    # Some rules reject numbers that fit no dtype; rules that only look at types accept them.
    refused = [good for good in GOOD if not any(explain(good, rules=name) for name in ("jax-x64", "torch", "numpy"))]
    assert refused == []


OUTCOMES = collections.Counter()
NUMBER_OF_CALLS, BYTES_OF_A_CALL = 100, 12


def _decode(data):
    """Decode a few random bytes into a call."""
    function = FUNCTIONS[data[0] % len(FUNCTIONS)]
    pools = [GOOD if choice % 8 else ARGUMENTS for choice in data[8:12]]  # otherwise nearly every call would fail
    indices = [index + 256 * (choice >= 128) for index, choice in zip(data[2:6], data[8:12], strict=True)]
    arguments = [pool[index % len(pool)] for index, pool in zip(indices, pools, strict=True)]
    operation = OPERATION_CHOICES[data[7] % len(OPERATION_CHOICES)]
    count = data[1] % 5
    if data[1] > 32:  # otherwise nearly every call would have the wrong number of operands
        row = OPERATIONS.get(operation) if isinstance(operation, str) else None
        count = (row and row.arity) or 2
    return function, arguments[:count], RULE_CHOICES[data[6] % len(RULE_CHOICES)], operation


def _outcome(function, arguments, rules, operation):
    try:
        answer = _call(function, arguments, rules, operation)
    except SupremumError as error:
        return error
    assert isinstance(answer, {can_promote: bool, explain: Decision}.get(function, (np.dtype, ColumnDtype)))
    return answer


def _make_100_calls(data):
    for start in range(0, len(data), BYTES_OF_A_CALL):
        function, arguments, rules, operation = _decode(data[start : start + BYTES_OF_A_CALL])
        outcome = _outcome(function, arguments, rules, operation)
        if isinstance(outcome, Exception):
            assert type(outcome) in OWN_ERRORS
            assert str(outcome)
        if isinstance(outcome, ArgumentError):
            assert "operand" in str(outcome)
        if isinstance(outcome, PromotionError):
            assert not outcome.decision
            assert "refused" in str(outcome)
        OUTCOMES[function.__name__, type(outcome).__name__] += 1


@pytest.mark.parametrize("hundreds", [20, slow(200), pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_random_calls_raise_only_errors_of_this_library(hundreds):
    OUTCOMES.clear()
    size = NUMBER_OF_CALLS * BYTES_OF_A_CALL
    settings(
        max_examples=hundreds, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )(given(st.binary(min_size=size, max_size=size))(_make_100_calls))()
    assert OUTCOMES.total() >= 100 * hundreds
    raised = {outcome for _, outcome in OUTCOMES}
    assert {error.__name__ for error in OWN_ERRORS} <= raised
    assert {"Decision", "bool"} <= raised
    by_function = collections.Counter(name for name, _ in OUTCOMES.elements())
    assert len(by_function) == 4
    assert min(by_function.values()) > 10 * hundreds


def test_strings_that_crash_numpy_are_rejected_first():
    code = """
import supremum
try:
    supremum.result_type("int8", "0T")  # np.dtype("0T") is a segmentation fault in NumPy 2.4
except supremum.UnknownDtypeError:
    print("refused")
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout.strip()) == (0, "refused")


class Talkative:
    def __repr__(self):
        return "x" * 10_000_000


class Silent:
    def __repr__(self):
        raise RuntimeError


HUGE = {
    "list": [0.5] * 1_000_000,
    "text": "x" * 10_000_000,
    "bytes": b"x" * 10_000_000,
    "dict": dict.fromkeys(range(1_000_000)),
    "nested": [[[[0] * 30] * 30] * 30] * 30,
    "integer": 10**100_000,
    "repr": Talkative(),
    "no repr": Silent(),
    "of itself": (lambda itself: itself.append(itself) or itself)([]),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("huge", HUGE.values(), ids=HUGE)
def test_messages_about_huge_values_are_short(huge):
    calls = [
        lambda: result_type(huge, "int8"),
        lambda: explain("int8", huge),
        lambda: result_type("int8", "int8", rules=huge),
        lambda: explain("int8", "int8", operation=huge),
        lambda: supremum.asarray(huge, dtype=huge),
        lambda: supremum.use_rules(huge),
        lambda: Policy(huge),
        lambda: DynamicLossScale(huge),
        lambda: autocast(lambda x: x, huge),
        lambda: nn.Dense(huge),
        lambda: nn.Dense(2, dtype=huge),
        lambda: Adam(huge),
        lambda: load_arrays(huge),
        lambda: save_arrays("/dev/null", huge),
    ]
    messages = []
    for call in calls:
        try:
            call()
        except Exception as error:
            messages.append(str(error))
    assert len(messages) > 6
    assert max(map(len, messages)) < 2500


@pytest.mark.parametrize("rules", ["jax", "numpy", "torch", "tf-all", "numpy-legacy"])
def test_messages_about_many_operands_are_short(rules):
    decision = explain(*(["bfloat16", "int8", "uint64", "float8_e4m3fn", "complex64"] * 400), rules=rules)
    assert not decision
    assert len(str(decision)) < 6000
    assert "1,960 more operands" in str(decision)
    if decision.fix is not None:
        assert len(decision.fix.expressions()) > 40
