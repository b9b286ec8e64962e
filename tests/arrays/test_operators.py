"""Every operation on arrays of NumPy and PyTorch has the dtype that each rule set decides, or raises its refusal."""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

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
from optional_packages import import_or_skip
from slowly import for_each, mostly_slow
from supremum import Array, explain, get_rules, use_rules
from supremum.arrays import ELEMENTWISE_OPERATIONS
from supremum.arrays.functions.losses import LOSSES
from supremum.arrays.wrapped import wrap
from supremum.formats import FORMATS, as_format
from supremum.rules.rule_set import LatticeRuleSet

# ml_dtypes warns about a zero divisor even inside np.errstate.
pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
SMALL = ("uint2", "int4", "float8_e4m3fn", "float8_e5m2")
LOOKS_AT_SHAPES = ("numpy-legacy", "torch", "paddle", "mlx")


class Library(NamedTuple):
    """A library whose arrays the tests ask for.

    Args:
        arrays: an array of each format, by name.
        zero_d: the same without dimensions.
        lacks: as for `calls.Cells`.
        powers: the exponents and bases to compute powers with, by name.
    """

    arrays: dict[str, Array]
    zero_d: dict[str, Array]
    lacks: Callable[..., bool]
    powers: dict[str, complex]


def _numpy_lacks(name, compute, _result=None, _to_int=False):
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


def _torch_lacks(name, compute, result, _to_int=False):
    """Whether torch lacks a function for these dtypes; losses are ours and lack what one of their steps lacks."""
    from conformance import torch_judge as judge

    if {*map(str, compute), str(result)} - judge.DTYPES.keys():
        return True
    tensors = [judge.torch.ones(1, dtype=judge.DTYPES[str(dtype)]) for dtype in compute]
    try:
        if name in LOSSES:
            judge.torch.abs(tensors[0] - tensors[1])
            if name == "poisson_nll_loss":
                judge.torch.exp(tensors[0])
        else:
            drops_fraction = name == "divide" and as_format(result).category == "integer"
            judge.ASKED["floor_divide" if drops_fraction else name](*tensors)
    except (RuntimeError, TypeError):
        return True
    return False


NUMPY = Library(calls.numpy_arrays(), calls.numpy_arrays(()), _numpy_lacks, NUMBERS)


@functools.cache
def _library(name):
    if name == "numpy":
        return NUMPY
    import_or_skip("torch")
    from conformance import torch_judge as judge

    # Torch cannot fill tensors of shell dtypes, or compute with them.
    names = [name for name in judge.DTYPES if name not in judge.SHELL]
    arrays, zero_d = (
        {name: wrap(judge.torch.ones(shape, dtype=judge.DTYPES[name])) for name in names} for shape in ((1,), ())
    )
    # Powers of 1 and True are left out, because torch computes them even for dtypes without a kernel.
    return Library(arrays, zero_d, _torch_lacks, {"2": 2, "2.5": 2.5, "2j": 2j})


def _cases(rules, **fast):
    """A library and a rule set each, which are slow except for those that are listed for the library."""
    return [
        pytest.param(library, each, marks=[] if each in names else pytest.mark.slow)
        for library, names in fast.items()
        for each in rules
    ]


def _check_calls(library, rules, names, tables):
    """Compare all calls of operations with operands from the given tables, and return the cells."""
    cells, rule_set = calls.Cells(library.lacks), get_rules(rules)
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


def _known(rules, arrays=NUMPY.arrays):
    """The arrays of formats that the rules accept; a format refused with itself is refused with every operand.

    Some of JAX's rule sets treat the small formats alike, so that only one of these rule sets gets all of them.
    """
    names = [*CLASSIC, *SMALL] if rules in STANDING_IN else FORMAT_OF
    return {name: arrays[name] for name in names if name in arrays and explain(name, name, rules=rules)}


def _shape_matters(rules):
    key_of = get_rules(rules).key_of
    return any(
        key_of(NUMPY.arrays[name].key.operand) != key_of(NUMPY.zero_d[name].key.operand) for name in NUMPY.arrays
    )


def test_rule_sets_refuse_the_formats_that_the_other_tests_skip():
    assert len(FORMAT_OF) == len(NUMPY.arrays) == len(FORMATS)
    assert {name for name in RULE_SETS if _shape_matters(name)} == set(LOOKS_AT_SHAPES)
    skipped = 0
    for rules in RULE_SETS:
        known, rule_set = _known(rules), get_rules(rules)
        assert len(known) > 10
        for name in FORMAT_OF.keys() - known.keys() if rules not in STANDING_IN else ():
            seen = NUMPY.arrays[name].key.operand
            assert not any(rule_set.decide(each, (seen, seen)) for each in BINARY)
            skipped += 1
    assert skipped > 100


# MLX refuses little, Polars and nullable columns have few of the types, and torch has few of the formats.
FEW_REFUSALS = {"mlx": 100, "polars": 50, "polars-1": 50, "pandas-nullable": 100}


@pytest.mark.one_in(2)
@pytest.mark.one_slow_in(3)
@pytest.mark.parametrize(
    ("library", "rules"),
    _cases(RULE_SETS, numpy=("jax-strict-x64", "tf-rfc-safe"), torch=("torch", "tf-rfc-safe")),
)
def test_operations_on_pairs_of_arrays_follow_the_rules(library, rules):
    asked = _library(library)
    known = _known(rules, asked.arrays)
    cells = _check_calls(asked, rules, BINARY, [(known, known)])
    assert cells.number["given"] > (300 if library == "numpy" else 200)
    assert library == "torch" or cells.number["refused"] > FEW_REFUSALS.get(rules, 150)
    _check_calls(asked, rules, ["add"], [(asked.arrays, asked.arrays)])
    unary = _check_calls(asked, rules, UNARY, [(asked.arrays,), (asked.zero_d,)])
    assert unary.number["given"] > 100


@pytest.mark.parametrize(("library", "rules"), _cases(LOOKS_AT_SHAPES, numpy=("paddle",), torch=()))
def test_operations_with_0d_arrays_follow_the_rules(library, rules):
    asked = _library(library)
    known = {
        name: array
        for name, array in _known(rules, asked.arrays).items()
        if explain(name, name, operation="add", rules=rules)
    }
    zero_d = {name: asked.zero_d[name] for name in known}
    cells = _check_calls(asked, rules, BINARY, [(known, zero_d), (zero_d, known)])
    assert cells.number["given"] > 2000


@pytest.mark.one_in(2)
@pytest.mark.one_slow_in(3)
@pytest.mark.parametrize(
    ("library", "rules"), _cases(RULE_SETS, numpy=("jax-strict-x64", "tf-rfc-safe"), torch=("torch", "paddle"))
)
def test_operations_with_python_numbers_and_weak_arrays_follow_the_rules(library, rules):
    asked = _library(library)
    known = _known(rules, asked.arrays)
    known.pop("int1", None)  # int1 cannot hold 1
    # Weak arrays in the dtypes that JAX gives to Python numbers with x64 on and off.
    dtypes = ("int32", "int64", "float32", "float64", "complex128") if get_rules(rules).weak_arrays else ()
    weak = {f"{name} (weak)": wrap(asked.arrays[name].unwrap(), weak=True) for name in dtypes}
    for names, numbers in (([name for name in BINARY if name != "pow"], NUMBERS), (["pow"], asked.powers)):
        others = numbers | weak
        alone = [(others, others)] if library == "numpy" else []  # it makes arrays of numbers
        cells = _check_calls(asked, rules, names, [(known, others), (others, known), *alone])
        assert cells.number["given"] > (200 if len(names) > 1 else 0)
    if library == "numpy":
        _check_calls(asked, rules, UNARY, [(NUMBERS | weak,)])
    # Numbers out of range of some dtypes or of all.
    _check_calls(asked, rules, ["add", "divide", "equal", "where"], [(known, MORE_NUMBERS), (MORE_NUMBERS, known)])
    # NumPy refuses negative powers of integers by value. The next test covers the power 300.
    beyond = (-1, 300) if weak else (-1,)
    exponents = {name: number for name, number in MORE_NUMBERS.items() if number not in beyond}
    _check_calls(asked, rules, ["pow"], [(known, exponents), (MORE_NUMBERS, known)])


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
            _ = NUMPY.arrays[name] + number


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rules", mostly_slow(RULE_SETS, "jax-x32", "paddle", "tf-off"))
def test_results_of_0d_arrays_are_0d_arrays(rules):
    """NumPy returns scalars, which other rule sets may treat differently. One call per decision is made."""
    zero_d, found = [NUMPY.zero_d[name] for name in _known(rules)], {}
    for name, (a, b) in itertools.product(BINARY, itertools.product(zero_d, repeat=2)):
        decision = get_rules(rules).decide(name, (a.key.operand, b.key.operand))
        found.setdefault((name, decision.verdict.compute, decision.result), (a, b))
    cells = calls.Cells(NUMPY.lacks)
    with use_rules(rules), np.errstate(all="ignore"):
        for (name, *_), call in found.items():
            cells.ask(get_rules(rules), name, calls.function_of(name), call)
    cells.check()
    assert cells.number["given"] > 50


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["numpy", "torch", "tf-rfc-all"])
def test_operators_agree_with_the_functions(rules):
    """Includes numbers on the left, for which Python calls the mirrored comparison."""
    known, numbers = _known(rules).values(), NUMBERS.values()
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
