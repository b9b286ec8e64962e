"""Every operation on NumPy's arrays gives the dtype that each rule set decides, or raises its refusal."""

import collections
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from arrays import calls
from arrays.calls import (
    BINARY,
    CLASSIC,
    FORMAT_OF,
    MORE_NUMBERS,
    NUMBERS,
    OPERATORS,
    REFUSED,
    REFUSING,
    RULE_SETS,
    UNARY,
)
from arrays.departures import NUMPY_LACKS
from slowly import for_each, mostly_slow
from supremum import explain, get_rules, use_rules
from supremum.arrays import ELEMENTWISE_OPERATIONS
from supremum.arrays.functions.losses import LOSSES
from supremum.arrays.wrapped import wrap
from supremum.formats import FORMATS
from supremum.operands import Operand
from supremum.rules.rule_set import LatticeRuleSet

# ml_dtypes warns about a zero divisor even inside np.errstate.
pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
ARRAYS = calls.numpy_arrays()
ZERO_D = calls.numpy_arrays(())
SMALL = ("uint2", "int4", "float8_e4m3fn", "float8_e5m2")
LOOKS_AT_SHAPES = ("numpy-legacy", "torch", "paddle", "mlx")


def _lacks(name, compute, _result=None, _to_int=False):
    """Whether NumPy lacks a function for these dtypes; losses are ours and lack what one of their steps lacks."""
    if name == "where":
        return False
    steps = ("subtract", "abs") if name in LOSSES else (name,)
    try:
        for step in steps:
            getattr(np, step)(*(np.ones(0, dtype) for dtype in compute[: ELEMENTWISE_OPERATIONS[step].operation.arity]))
    except TypeError:
        return True
    return False


def _weak_arrays(shape=(1,)):
    """Weak arrays in the dtypes that JAX gives to Python numbers with x64 on and off."""
    names = ("int32", "int64", "float32", "float64", "complex128")
    return {f"{name} (weak)": wrap(np.ones(shape, name), weak=True) for name in names}


def _check_calls(rules, names, tables):
    """Compare all calls of operations with operands from the given tables, and return the cells."""
    cells, rule_set = calls.Cells(_lacks), get_rules(rules)
    every = [call for table in tables for call in itertools.product(*(each.values() for each in table))]
    # A lattice refuses operands without a join in every operation.
    joined = [call for call in every if calls.decided(rule_set, None, call)[0] != REFUSED]
    with use_rules(rules), np.errstate(all="ignore"):
        for name in names:
            function = calls.function_of(name)
            for call in joined if name not in REFUSING and isinstance(rule_set, LatticeRuleSet) else every:
                cells.ask(rule_set, name, function, call)
    cells.check()
    return cells


STANDING_IN = ("jax-x32", "jax-strict-x64", "jax-strict-x32", "jax-strict-explicit-x64")


def _known(rules):
    """The formats that the rules accept; a format refused with itself is refused with every operand.

    Some of JAX's rule sets treat the small formats alike, so that only one of these rule sets gets all of them.
    """
    names = [*CLASSIC, *SMALL] if rules in STANDING_IN else FORMAT_OF
    return [name for name in names if explain(name, name, rules=rules)]


def _shape_matters(rules):
    return any(
        get_rules(rules).key_of(ARRAYS[name].key.operand) != get_rules(rules).key_of(ZERO_D[name].key.operand)
        for name in ARRAYS
    )


def _only(arrays, names):
    return {name: arrays[name] for name in names}


def test_rule_sets_refuse_the_formats_that_the_other_tests_skip():
    assert len(FORMAT_OF) == len(ARRAYS) == len(FORMATS)
    assert {name for name in RULE_SETS if _shape_matters(name)} == set(LOOKS_AT_SHAPES)
    skipped = 0
    for rules in RULE_SETS:
        known, rule_set = _known(rules), get_rules(rules)
        assert len(known) > 10
        for name in FORMAT_OF.keys() - known if rules not in STANDING_IN else ():
            seen = ARRAYS[name].key.operand
            assert not any(rule_set.decide(each, (seen, seen)) for each in BINARY)
            skipped += 1
    assert skipped > 100


# MLX refuses little, and Polars and nullable columns have few of the types.
FEW_REFUSALS = {"mlx": 100, "polars": 50, "polars-1": 50, "pandas-nullable": 100}


@pytest.mark.one_in(2)
@pytest.mark.one_slow_in(3)
@pytest.mark.parametrize("rules", mostly_slow(RULE_SETS, "jax-strict-x64", "tf-rfc-safe"))
def test_operations_on_pairs_of_arrays_follow_the_rules(rules):
    known = _only(ARRAYS, _known(rules))
    cells = _check_calls(rules, BINARY, [(known, known)])
    assert cells.number["given"] > 300
    assert cells.number["refused"] > FEW_REFUSALS.get(rules, 150)
    _check_calls(rules, ["add"], [(ARRAYS, ARRAYS)])
    unary = _check_calls(rules, UNARY, [(ARRAYS,), (ZERO_D,)])
    assert unary.number["given"] > 100


@pytest.mark.parametrize("rules", mostly_slow(LOOKS_AT_SHAPES, "paddle"))
def test_operations_with_0d_arrays_follow_the_rules(rules):
    adding = [name for name in _known(rules) if explain(name, name, operation="add", rules=rules)]
    known, zero_d = _only(ARRAYS, adding), _only(ZERO_D, adding)
    cells = _check_calls(rules, BINARY, [(known, zero_d), (zero_d, known)])
    assert cells.number["given"] > 3000


@pytest.mark.one_in(2)
@pytest.mark.one_slow_in(3)
@pytest.mark.parametrize("rules", mostly_slow(RULE_SETS, "jax-strict-x64", "tf-rfc-safe"))
def test_operations_with_python_numbers_and_weak_arrays_follow_the_rules(rules):
    known = _only(ARRAYS, _known(rules))
    known.pop("int1", None)  # int1 cannot hold 1
    numbers = NUMBERS | (_weak_arrays() if get_rules(rules).weak_arrays else {})
    cells = _check_calls(rules, BINARY, [(known, numbers), (numbers, known), (numbers, numbers)])
    assert cells.number["given"] > 300
    _check_calls(rules, UNARY, [(numbers,)])
    # Numbers out of range of some dtypes or of all.
    _check_calls(rules, ["add", "divide", "equal", "where"], [(known, MORE_NUMBERS), (MORE_NUMBERS, known)])
    # NumPy refuses negative powers of integers by value. The next test covers the power 300.
    beyond = (-1, 300) if get_rules(rules).weak_arrays else (-1,)
    powers = {name: number for name, number in MORE_NUMBERS.items() if number not in beyond}
    _check_calls(rules, ["pow"], [(known, powers), (MORE_NUMBERS, known)])


def test_power_under_jax_rules_uses_an_exponent_out_of_range():
    """Under these rules a known exponent gets no dtype, because JAX multiplies repeatedly."""
    with use_rules("jax-x64"):
        assert (wrap(np.array([2], "uint8")) ** 256).item() == 2**256 % 256


@pytest.mark.parametrize("make", [np.array, jnp.array])
@pytest.mark.parametrize(
    ("rules", "dtype", "exponent", "becomes"),
    [("keras", "uint8", 257, 1), ("tf-off", "int8", 258, 2), ("mlx", "bool", 2**40, 0), ("paddle", "int32", 2**32, 0)],
)
def test_power_wraps_an_exponent_around_under_rules_that_give_it_a_dtype(rules, dtype, exponent, becomes, make):
    base = make([0, 1, 2]).astype(dtype)
    with use_rules(rules):
        power = wrap(base) ** exponent
        change = explain(wrap(base), exponent, operation="pow").number_changes[-1]
    assert (change.how, change.becomes) == ("wraps", becomes)
    np.testing.assert_array_equal(power.unwrap(), np.asarray(base) ** np.asarray(becomes, str(power.dtype)))


@for_each("rules", RULE_SETS)
def test_python_int_beyond_every_float_raises_overflow_error(rules):
    for name, number in itertools.product(("float32", "float64"), (10**400, -(10**400))):
        with use_rules(rules), pytest.raises(OverflowError):
            _ = ARRAYS[name] + number


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rules", mostly_slow(RULE_SETS, "jax-x32", "paddle", "tf-off"))
def test_results_of_0d_arrays_are_0d_arrays(rules):
    """NumPy returns scalars, which other rule sets may treat differently. One call per decision is made."""
    zero_d, found = _only(ZERO_D, _known(rules)), {}
    for name, (a, b) in itertools.product(BINARY, itertools.product(zero_d.values(), repeat=2)):
        decision = get_rules(rules).decide(name, (a.key.operand, b.key.operand))
        found.setdefault((name, decision.verdict.compute, decision.result), (a, b))
    cells = calls.Cells(_lacks)
    with use_rules(rules), np.errstate(all="ignore"):
        for (name, *_), call in found.items():
            cells.ask(get_rules(rules), name, calls.function_of(name), call)
    cells.check()
    assert cells.number["given"] > 50


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["numpy", "torch", "tf-rfc-all"])
def test_operators_agree_with_the_functions(rules):
    """Includes numbers on the left, for which Python calls the mirrored comparison."""
    known, numbers = _only(ARRAYS, _known(rules)).values(), NUMBERS.values()
    different = {}
    with use_rules(rules), np.errstate(all="ignore"):
        for name, operator in OPERATORS.items():
            function = calls.function_of(name)
            tables = [(known,)] if name in UNARY else [(known, known), (known, numbers), (numbers, known)]
            for call in itertools.chain(*(itertools.product(*table) for table in tables)):
                plain, spelled = calls.called(function, call), calls.called(operator, call)
                if plain != spelled:
                    different[name, *(getattr(each, "dtype", each) for each in call)] = (plain, spelled)
    assert different == {}


@pytest.mark.slow
def test_dtypes_that_numpy_lacks_are_as_listed():
    """Collects the dtypes over all rule sets."""
    missing = collections.defaultdict(set)
    for rules, name in itertools.product(RULE_SETS, ELEMENTWISE_OPERATIONS):
        arity = ELEMENTWISE_OPERATIONS[name].operation.arity
        for row in FORMAT_OF.values():
            decision = get_rules(rules).decide(name, (Operand(row.category, row.dtype, ndim=1),) * arity)
            if decision and _lacks(name, decision.verdict.compute):
                missing[name].add(str(decision.verdict.compute[0]))
    assert {name: " ".join(sorted(found)) for name, found in missing.items() if name in NUMPY_LACKS} == NUMPY_LACKS
