"""NumPy's rule set compared with the installed NumPy: full products of formats, numbers and functions."""

import collections
import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from conformance.departures import DEPARTURES, departures_of_version, expected_cells
from conformance.measured import fixed_operands
from optional_packages import needs_format
from slowly import for_each
from supremum import PromotionError, explain, promote_types, result_type
from supremum.formats import FORMATS, as_format
from supremum.lattice import counterexamples
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE, OPERATIONS
from supremum.rules.numpy import NUMPY

NAMES = [row.name for row in FORMATS]
OWN = [row.name for row in FORMATS if row.is_builtin]
NUMBERS = {"int*": 1, "float*": 1.0, "complex*": 1j}
# Zeros, because they are not negative exponents and every integer format can hold them.
ARRAYS = {row.name: np.zeros((1,), row.dtype) for row in FORMATS}
ZERO_DIMENSIONAL = {f"{row.name}[]": np.zeros((), row.dtype) for row in FORMATS}
VALUES = ARRAYS | ZERO_DIMENSIONAL | NUMBERS | {"True": True}
OPERANDS = {name: as_operand(value) for name, value in VALUES.items()}
FUNCTIONS = [name for name in ELEMENTWISE if name not in NUMPY.stands_in]
NUMPY_NAMES = {"bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}
UFUNCS = [name for name in FUNCTIONS if isinstance(getattr(np, NUMPY_NAMES.get(name, name)), np.ufunc)]
VERSION = tuple(map(int, np.__version__.split(".")[:2]))
BEFORE_2_5 = VERSION < (2, 5)

# Only dtypes are tested, so warnings about computations with zeros do not matter.
pytestmark = [
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
OF_TWO = [name for name in FUNCTIONS if OPERATIONS[name].arity == 2]


def _function(name):
    if name == "where":
        return lambda a, b: np.where(True, a, b)
    if name in ("real", "imag"):  # for a Python number NumPy returns a Python number, which has no dtype
        return lambda a: getattr(np, name)(np.asarray(a))
    return getattr(np, NUMPY_NAMES.get(name, name))


def _theirs(function, *operands):
    """The dtype of a call; None if NumPy refuses it or gives an object dtype."""
    try:
        result = function(*operands)
    except (TypeError, OverflowError):  # NumPy raises OverflowError for large ints, ml_dtypes TypeError
        return None
    dtype = result if isinstance(result, np.dtype) else getattr(result, "dtype", np.dtype(object))
    return None if dtype.hasobject else dtype.name


def _ours(operation, *operands):
    result = NUMPY.decide(operation, operands).result
    return None if result is None else result.dtype.name


def test_result_type_of_pairs_agrees_with_installed_numpy():
    different = {
        (a, b): (ours, theirs)
        for a, b in itertools.product(VALUES, repeat=2)
        if (ours := _ours(None, OPERANDS[a], OPERANDS[b])) != (theirs := _theirs(np.result_type, VALUES[a], VALUES[b]))
    }
    assert different == {}


def test_promote_types_of_pairs_agrees_with_installed_numpy():
    for a, b in itertools.product(NAMES, repeat=2):
        theirs = _theirs(np.promote_types, ARRAYS[a].dtype, ARRAYS[b].dtype)
        try:
            ours = promote_types(a, b, rules=NUMPY).name
        except PromotionError:
            ours = None
        assert ours == theirs, (a, b)


@pytest.mark.slow
def test_result_type_of_triples_agrees_with_installed_numpy():
    # Folding pairs is not enough: result_type promotes all operands at once, and in NumPy their order can matter.
    names = [*NAMES, *NUMBERS]
    assert len(names) ** 3 > 50_000
    different = {
        triple: (ours, theirs)
        for triple in itertools.product(names, repeat=3)
        if (ours := _ours(None, *map(OPERANDS.get, triple)))
        != (theirs := _theirs(np.result_type, *map(VALUES.get, triple)))
    }
    assert different == {}


# Arrays, dtypes and numbers: NumPy promotes dtypes first, at any position.
THINGS = [*VALUES.values(), *(array.dtype for array in ARRAYS.values())]


@pytest.mark.slow
@settings(max_examples=1500, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(range(len(THINGS))), min_size=1, max_size=6))
def test_result_type_of_many_operands_agrees_with_installed_numpy(chosen):
    things = [THINGS[i] for i in chosen]
    assert _ours(None, *map(as_operand, things)) == _theirs(np.result_type, *things)


def test_result_type_of_three_operands_differs_from_folded_pairs():
    assert result_type("int8", "uint8", "float16", rules=NUMPY) == np.float16
    assert promote_types(promote_types("int8", "uint8", rules=NUMPY), "float16", rules=NUMPY) == np.float32
    # The order of these operands matters to NumPy, and it promotes dtypes first.
    array, dtype = np.zeros(1, bool), ARRAYS["uint2"].dtype
    for things in itertools.permutations([array, dtype, 1]):
        assert result_type(*things, rules=NUMPY) == np.result_type(*things)


@for_each("name", FUNCTIONS, one_in=4, one_slow_in=4)
def test_dtypes_of_functions_agree_with_installed_numpy_except_departures(name):
    function = _function(name)
    different = {}
    for operands in itertools.product(VALUES, repeat=OPERATIONS[name].arity):
        theirs = _theirs(function, *(VALUES[operand] for operand in operands))
        ours = _ours(name, *(OPERANDS[operand] for operand in operands))
        if ours != theirs:
            different[operands] = (ours or "refused", theirs or "refused")
    listed = [row for row in departures_of_version("numpy", VERSION) if row.cells and name == row.operations]
    covered = collections.Counter()
    for (left, *right), answers in different.items():
        covered.update(row for row in listed if row.covers(name, "function", left, "".join(right), *answers))
    assert covered == expected_cells({row: row.cells for row in listed}, covered)
    assert covered.total() == len(different), different


@pytest.mark.parametrize(
    "clip", [lambda a, b: np.clip(a, b, None), lambda a, b: np.clip(a, None, b), lambda a, b: np.clip(a, b, b)],
    ids=["lower bound", "upper bound", "both bounds"],
)  # fmt: skip
def test_clip_with_one_or_two_bounds_agrees_with_installed_numpy(clip, request):
    repeats = 2 if "both" in request.node.callspec.id else 1
    different = {
        (a, b): (ours, theirs)
        for a, b in itertools.product(VALUES, repeat=2)
        if (ours := _ours("clip", OPERANDS[a], *[OPERANDS[b]] * repeats))
        != (theirs := _theirs(clip, VALUES[a], VALUES[b]))
    }
    assert different == {}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # NumPy deprecates some aliases
def test_aliases_give_the_dtypes_of_the_function():
    names = [(name, alias) for name in FUNCTIONS for alias in OPERATIONS[name].aliases if hasattr(np, alias)]
    assert {("trunc", "fix"), ("round", "around"), ("conj", "conjugate")} < {*names}
    for name, alias in names:
        for operands in itertools.product(VALUES, repeat=OPERATIONS[name].arity):
            values = [VALUES[operand] for operand in operands]
            assert _theirs(getattr(np, alias), *values) == _theirs(_function(name), *values), (alias, operands)


@for_each("name", UFUNCS, one_in=4, one_slow_in=4)
def test_computation_dtypes_agree_with_resolve_dtypes(name):
    function = _function(name)
    types = {row.name: row.dtype for row in FORMATS} | {"int*": int, "float*": float, "complex*": complex}
    for operands in itertools.product(types, repeat=function.nin):
        try:
            theirs = function.resolve_dtypes((*(types[operand] for operand in operands), None))
        except TypeError:
            theirs = None
        decision = NUMPY.decide(name, [as_operand(operand) for operand in operands])
        ours = (*decision.verdict.compute, decision.dtype) if decision else None
        if theirs is not None and theirs[0].hasobject:
            # NumPy compares two Python ints as objects.
            assert set(operands) == {"int*"}
            assert ours[-1] is theirs[-1] is np.dtype(bool)
        else:
            assert ours == theirs, operands


# Ints around every value at which an answer could change.
_EDGES = {edge for row in FORMATS if not row.is_inexact for edge in (row.min, row.max)} | {-(2**1024 - 2**970)}
INTS = sorted(
    {edge + step for edge in _EDGES for step in (-1, 0, 1)} | {2**1024 - 2**970 - 1, 2**1024 - 2**970, 10**400}
)
FLOATS = [0.0, -0.0, 448.0, 464.0, 1e5, 65519.0, 65520.0, -1e10, 1e39, 1e308, float("inf"), float("-inf"), float("nan")]


def _wraps_silently(array, value):
    """Whether `where` of NumPy before 2.5 silently wraps an int: any 64-bit int if the array's dtype cannot hold it."""
    holds_large_ints = array.dtype.isbuiltin == 1 and as_format(array.dtype).is_inexact
    return BEFORE_2_5 and -(2**63) <= value < 2**64 and not holds_large_ints


def _is_negative_integer_power(name, call):
    """Whether `np.power` refuses a negative exponent of integers, which depends on the value and not on the dtypes."""
    if name != "pow" or not isinstance(call[1], int) or call[1] >= 0:
        return False
    try:
        np.power(*call)
    except ValueError as error:
        return "negative integer powers" in str(error)
    except (TypeError, OverflowError):
        return False
    return False


@for_each("name, number_first", itertools.product(OF_TWO, (False, True)), one_in=8, one_slow_in=4)
def test_python_ints_of_every_size_agree_with_installed_numpy(name, number_first):
    function = _function(name)
    numbers = [(value, as_operand(value)) for value in INTS]
    wrapped = 0
    for array in ARRAYS.values():
        operand = as_operand(array)
        # NumPy caches the loop that it finds for the first int, and finds a different one if that int needs more than
        # 64 bits. A call with a small int comes first.
        of_small = _theirs(function, *((1, array) if number_first else (array, 1)))
        for value, number in numbers:
            call = (value, array) if number_first else (array, value)
            decision = NUMPY.decide(name, (number, operand) if number_first else (operand, number))
            if _is_negative_integer_power(name, call):
                assert decision
                continue
            theirs = _theirs(function, *call)
            if name == "where" and theirs is not None and not decision:
                assert _wraps_silently(array, value), call
                wrapped += 1
            else:
                assert (decision.dtype.name if decision else None) == theirs, call
            # A refusal is an overflow exactly if a small int is accepted.
            assert bool(decision) or decision.verdict.overflow == (of_small is not None), call
    assert (wrapped > 0) == (name == "where" and BEFORE_2_5)


def test_where_refuses_python_ints_that_numpy_before_2_5_wraps():
    (departure,) = [row for row in DEPARTURES if row.rules == "numpy" and not row.cells]
    assert departure.operations == "where"
    array = ARRAYS["uint8"]
    assert not explain(array, 256, operation="where", rules=NUMPY)
    if BEFORE_2_5:
        assert np.where([False], array, 256)[0] == 0
    else:
        with pytest.raises(OverflowError):
            np.where([False], array, 256)


@for_each("name", FUNCTIONS)
def test_python_ints_without_an_array_agree_with_installed_numpy(name):
    function, arity = _function(name), OPERATIONS[name].arity
    for value in INTS:
        others = [()] if arity == 1 else [(1,), (1.0,), (1j,), (True,)]
        for other in others:
            _theirs(function, *((1,) if arity == 1 else (1, *other)))
            theirs = _theirs(function, value, *other)
            ours = _ours(name, *map(as_operand, (value, *other)))
            if name == "where" and BEFORE_2_5 and theirs is not None and ours is None:
                assert 2**63 <= value < 2**64  # the same departure: NumPy wraps the int to a negative number
                continue
            assert ours == theirs, (value, *other)


@for_each("name", [*FUNCTIONS, None])
def test_values_of_python_floats_do_not_change_the_dtype(name):
    if name is not None and OPERATIONS[name].arity == 1:
        assert {_ours(name, as_operand(value)) for value in FLOATS} == {_theirs(_function(name), 1.0)}
        return
    function = np.result_type if name is None else _function(name)
    for array, value in itertools.product(ARRAYS.values(), FLOATS):
        assert _ours(name, as_operand(array), as_operand(value)) == _theirs(function, array, value), (
            array,
            value,
        )


def test_result_type_ignores_values_except_of_a_single_int():
    for value in INTS:
        assert _ours(None, as_operand(value)) == _theirs(np.result_type, value)
        for other in (*ARRAYS.values(), 1, 1.0, 1j):
            theirs = _theirs(np.result_type, other, value)
            assert _ours(None, as_operand(other), as_operand(value)) == theirs, (other, value)


@pytest.mark.slow
def test_order_of_operands_matters_exactly_where_it_matters_to_numpy():
    names = [*NAMES, *NUMBERS]
    one_way = {}
    for name in [*FUNCTIONS, None]:
        if name is not None and OPERATIONS[name].arity == 1:
            continue
        function = np.result_type if name is None else _function(name)
        for a, b in itertools.combinations(names, 2):
            theirs = _theirs(function, VALUES[a], VALUES[b]) == _theirs(function, VALUES[b], VALUES[a])
            ours = _ours(name, OPERANDS[a], OPERANDS[b]) == _ours(name, OPERANDS[b], OPERANDS[a])
            assert ours == theirs, (name, a, b)
            if not ours:
                one_way.setdefault(name, set()).update((a, b))
    assert None not in one_way
    assert "where" not in one_way
    # Only formats of ml_dtypes that can be cast safely to each other: NumPy finds the first operand's loop first.
    assert one_way
    assert set().union(*one_way.values()).isdisjoint([*OWN, *NUMBERS, "bfloat16"])


def test_non_associative_triples_are_those_of_numpy():
    def numpys(a, b):
        return np.promote_types(a, b).name

    def ours(a, b):
        return promote_types(a, b, rules=NUMPY).name

    assert len(OWN) ** 3 == 2744
    found = list(counterexamples(ours, OWN))
    assert found == list(counterexamples(numpys, OWN))
    assert len(found) == 28
    assert {example.law for example in found} == {"associative"}


@for_each("name", [*FUNCTIONS, None], one_in=20, one_slow_in=8)
def test_fixed_calls_agree_with_installed_numpy(name):
    names = [*NAMES, *NUMBERS]
    function = np.result_type if name is None else _function(name)
    unfixable = set()
    for operands in itertools.product(names, repeat=2 if name is None else OPERATIONS[name].arity):
        decision = NUMPY.decide(name, [OPERANDS[operand] for operand in operands])
        if decision:
            continue
        if decision.fix is None:
            unfixable.add(operands)
            continue
        fixed = fixed_operands(decision, [VALUES[operand] for operand in operands])
        theirs = _theirs(function, *fixed)
        assert theirs is not None, (operands, str(decision.fix))
        assert _ours(name, *map(as_operand, fixed)) == theirs, (operands, str(decision.fix))
    # For functions without complex kernels a fix uses `.real`, which NumPy lacks for the complex formats of ml_dtypes.
    foreign = [row.name for row in FORMATS if row.category == "complex" and not row.is_builtin]
    assert all({*foreign}.intersection(operands) for operands in unfixable)
    assert not unfixable or not NUMPY.decide(name, [OPERANDS["complex*"]] * OPERATIONS[name].arity)


@pytest.mark.slow
def test_calls_with_fixed_overflows_agree_with_installed_numpy():
    fixes = 0
    for array, value, name in itertools.product(ARRAYS.values(), INTS, ("add", "bitwise_and", "where")):
        decision = explain(array, value, operation=name, rules=NUMPY)
        if not decision and decision.fix is not None:
            fixes += 1
            fixed = fixed_operands(decision, (array, value))
            assert _theirs(_function(name), *fixed) == explain(*fixed, operation=name, rules=NUMPY).dtype.name
    assert fixes > 100
    assert str(explain(ARRAYS["int8"], 2**70, operation="add", rules=NUMPY).fix).startswith("a.astype('")
    assert str(explain(2**64, operation="sin", rules=NUMPY).fix) == "np.asarray(a, 'float32')"


@needs_format("complex32")
def test_numpy_real_and_imag_do_not_work_for_ml_dtypes_complex_formats():
    array = np.full(1, 1 + 2j, "complex32")
    assert np.real(array).dtype == "complex32"
    assert complex(np.imag(array)[0]) == 0
    assert str(explain(array, operation="imag", rules=NUMPY).fix) == "a.astype('complex64')"


def test_stand_ins_are_for_exactly_the_functions_that_numpy_lacks():
    assert {name for name in ELEMENTWISE if not hasattr(np, NUMPY_NAMES.get(name, name))} == NUMPY.stands_in.keys()
