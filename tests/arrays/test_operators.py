"""What every operation gives for every pair of NumPy's arrays under every rule set: what was decided, or a refusal."""

import collections
import itertools

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
from slowly import mostly_slow
from supremum import explain, get_rules, use_rules
from supremum.arrays.array import wrap
from supremum.arrays.dispatch import ELEMENTWISE_OPERATIONS
from supremum.arrays.functions.losses import LOSSES
from supremum.operands import Operand
from supremum.rules.rule_set import LatticeRuleSet

# ml_dtypes warns of a zero divisor whatever np.errstate says.
pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
ARRAYS = calls.numpy_arrays()
ZERO_D = calls.numpy_arrays(())
SMALL = ("uint2", "int4", "float8_e4m3fn", "float8_e5m2")
LOOKS_AT_SHAPES = ("numpy-legacy", "torch", "paddle")


def _lacks(name, compute, _result=None, _to_int=False):
    """NumPy itself asked; losses are ours, and lack what their steps lack."""
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
    """Arrays that stand for Python numbers, in the dtypes that JAX holds them in with x64 on and off."""
    names = ("int32", "int64", "float32", "float64", "complex128")
    return {f"{name} (weak)": wrap(np.ones(shape, name), weak=True) for name in names}


def _asked(rules, names, tables):
    """Cells of all calls of operations whose operands come from pairs of tables."""
    cells, rule_set = calls.Cells(_lacks), get_rules(rules)
    every = [call for table in tables for call in itertools.product(*(each.values() for each in table))]
    # What has no join is refused by a lattice whatever the operation.
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
    """Formats that the rules take at all: what they refuse next to itself they refuse next to anything.

    Some of JAX's rule sets treat the small formats as another does, which stands for them there.
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


def test_every_rule_set_is_asked_about_every_format():
    assert len(FORMAT_OF) == len(ARRAYS) == 34
    assert {name for name in RULE_SETS if _shape_matters(name)} == set(LOOKS_AT_SHAPES)
    for rules in RULE_SETS:
        known, rule_set = _known(rules), get_rules(rules)
        assert len(known) > 10
        for name in FORMAT_OF.keys() - known:
            seen = ARRAYS[name].key.operand
            assert rules in STANDING_IN or not any(rule_set.decide(each, (seen, seen)) for each in BINARY)


@pytest.mark.one_in(2)
@pytest.mark.in_turns(3)
@pytest.mark.parametrize("rules", mostly_slow(RULE_SETS, "jax-strict-x64", "tf-rfc-safe"))
def test_every_pair_of_arrays(rules):
    known = _only(ARRAYS, _known(rules))
    cells = _asked(rules, BINARY, [(known, known)])
    assert cells.number["given"] > 300
    assert cells.number["refused"] > 150
    _asked(rules, ["add"], [(ARRAYS, ARRAYS)])
    unary = _asked(rules, UNARY, [(ARRAYS,), (ZERO_D,)])
    assert unary.number["given"] > 100


@pytest.mark.parametrize("rules", mostly_slow(LOOKS_AT_SHAPES, "paddle"))
def test_every_pair_with_0d_arrays(rules):
    adding = [name for name in _known(rules) if explain(name, name, operation="add", rules=rules)]
    known, zero_d = _only(ARRAYS, adding), _only(ZERO_D, adding)
    cells = _asked(rules, BINARY, [(known, zero_d), (zero_d, known)])
    assert cells.number["given"] > 3000


@pytest.mark.one_in(2)
@pytest.mark.in_turns(3)
@pytest.mark.parametrize("rules", mostly_slow(RULE_SETS, "jax-strict-x64", "tf-rfc-safe"))
def test_python_numbers_and_weak_arrays_on_either_side(rules):
    known = _only(ARRAYS, _known(rules))
    known.pop("int1", None)  # which has no one
    numbers = NUMBERS | (_weak_arrays() if get_rules(rules).weak_arrays else {})
    cells = _asked(rules, BINARY, [(known, numbers), (numbers, known), (numbers, numbers)])
    assert cells.number["given"] > 300
    _asked(rules, UNARY, [(numbers,)])
    # Numbers out of range of some dtypes, and of all.
    _asked(rules, ["add", "divide", "equal", "where"], [(known, MORE_NUMBERS), (MORE_NUMBERS, known)])
    # A negative power of integers is an error of values in NumPy, whatever their dtypes.
    beyond = (-1, 300) if get_rules(rules).weak_arrays else (-1,)  # 300: the test after this one
    powers = {name: number for name, number in MORE_NUMBERS.items() if number not in beyond}
    _asked(rules, ["pow"], [(known, powers), (MORE_NUMBERS, known)])


def test_a_power_under_the_rules_of_jax_is_that_of_the_whole_exponent():
    """These rules say that the exponent takes no dtype: JAX multiplies."""
    with use_rules("jax-x64"):
        assert (wrap(np.array([2], "uint8")) ** 256).item() == 2**256 % 256


@pytest.mark.parametrize("rules", RULE_SETS)
def test_a_number_that_no_float_holds_overflows(rules):
    for name, number in itertools.product(("float32", "float64"), (10**400, -(10**400))):
        with use_rules(rules), pytest.raises(OverflowError):
            _ = ARRAYS[name] + number


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rules", mostly_slow(RULE_SETS, "jax-x32", "paddle", "tf-off"))
def test_results_of_0d_arrays_are_0d_arrays(rules):
    """NumPy makes scalars of them, which another rule set may see otherwise: of each decision one is asked."""
    zero_d, found = _only(ZERO_D, _known(rules)), {}
    for name, (a, b) in itertools.product(BINARY, itertools.product(zero_d.values(), repeat=2)):
        decision = get_rules(rules).decide(name, (a.key.operand, b.key.operand))
        found.setdefault((name, decision.verdict.compute, decision.result), (a, b))
    cells = calls.Cells(_lacks)
    with use_rules(rules), np.errstate(all="ignore"):
        for (name, *_), call in found.items():
            cells.ask(get_rules(rules), name, calls.function_of(name), call)
    cells.check()


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["numpy", "torch", "tf-rfc-all"])
def test_operators_are_the_functions(rules):
    """Also for numbers on the left, of which Python asks the mirrored comparison."""
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
def test_what_numpy_lacks():
    """Written down, so that it is noticed when more of it is refused. All rule sets ask it together."""
    missing = collections.defaultdict(set)
    for rules, name in itertools.product(RULE_SETS, ELEMENTWISE_OPERATIONS):
        arity = ELEMENTWISE_OPERATIONS[name].operation.arity
        for row in FORMAT_OF.values():
            decision = get_rules(rules).decide(name, (Operand(row.category, row.dtype, ndim=1),) * arity)
            if decision and _lacks(name, decision.verdict.compute):
                missing[name].add(str(decision.verdict.compute[0]))
    assert {name: " ".join(sorted(found)) for name, found in missing.items() if name in NUMPY_LACKS} == NUMPY_LACKS
