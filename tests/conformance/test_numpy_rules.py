"""NumPy's rule set against the installed NumPy: full products of formats, numbers and functions."""

import collections
import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from conformance.departures import DEPARTURES, departures_of_version
from supremum import OperandError, PromotionError, ScalarOverflowError, explain, promote_types, result_type
from supremum.formats import FORMATS, as_format
from supremum.lattice import counterexamples
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE, OPERATIONS, Operation, Result
from supremum.rules.numpy import NUMPY

NAMES = [row.name for row in FORMATS]
OWN = [row.name for row in FORMATS if row.is_builtin]
NUMBERS = {"int*": 1, "float*": 1.0, "complex*": 1j}
# Zeros: they are no negative exponents, and every integer format has them.
ARRAYS = {row.name: np.zeros((1,), row.dtype) for row in FORMATS}
ZERO_DIMENSIONAL = {f"{row.name}[]": np.zeros((), row.dtype) for row in FORMATS}
VALUES = ARRAYS | ZERO_DIMENSIONAL | NUMBERS | {"True": True}
OPERANDS = {name: as_operand(value) for name, value in VALUES.items()}
FUNCTIONS = [name for name in ELEMENTWISE if name not in NUMPY.stands_in]
NUMPY_NAMES = {"bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}
UFUNCS = [name for name in FUNCTIONS if isinstance(getattr(np, NUMPY_NAMES.get(name, name)), np.ufunc)]
VERSION = tuple(map(int, np.__version__.split(".")[:2]))
BEFORE_2_5 = VERSION < (2, 5)

# What becomes of the zeros is not what is tested here.
pytestmark = [
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
every_function = pytest.mark.parametrize("name", FUNCTIONS)
every_ufunc = pytest.mark.parametrize("name", UFUNCS)


def _function(name):
    if name == "where":
        return lambda a, b: np.where(True, a, b)
    if name in ("real", "imag"):  # of a Python number they are one again, without a dtype: it is asked as an array
        return lambda a: getattr(np, name)(np.asarray(a))
    return getattr(np, NUMPY_NAMES.get(name, name))


def _numpy_says(function, *operands):
    """The dtype of a call, or None; an object dtype is none of ours."""
    try:
        result = function(*operands)
    except (TypeError, OverflowError):  # OverflowError for large ints, which ml_dtypes raises as TypeError
        return None
    dtype = result if isinstance(result, np.dtype) else getattr(result, "dtype", np.dtype(object))
    return None if dtype.hasobject else dtype.name


def _we_say(operation, *operands):
    result = NUMPY.decide(operation, operands).result
    return None if result is None else result.dtype.name


def test_every_pair_of_result_type():
    different = {
        (a, b): (ours, theirs)
        for a, b in itertools.product(VALUES, repeat=2)
        if (ours := _we_say(None, OPERANDS[a], OPERANDS[b]))
        != (theirs := _numpy_says(np.result_type, VALUES[a], VALUES[b]))
    }
    assert different == {}


def test_every_pair_of_promote_types():
    for a, b in itertools.product(NAMES, repeat=2):
        theirs = _numpy_says(np.promote_types, ARRAYS[a].dtype, ARRAYS[b].dtype)
        try:
            ours = promote_types(a, b, rules=NUMPY).name
        except PromotionError:
            ours = None
        assert ours == theirs, (a, b)


@pytest.mark.slow
def test_every_triple_of_result_type():
    # Not pairs folded: result_type looks at all operands at once, and in NumPy their order can matter.
    names = [*NAMES, *NUMBERS]
    assert len(names) ** 3 > 50_000
    different = {
        triple: (ours, theirs)
        for triple in itertools.product(names, repeat=3)
        if (ours := _we_say(None, *map(OPERANDS.get, triple)))
        != (theirs := _numpy_says(np.result_type, *map(VALUES.get, triple)))
    }
    assert different == {}


# Arrays, dtypes and numbers: NumPy looks at the dtypes first, wherever they stand.
THINGS = [*VALUES.values(), *(array.dtype for array in ARRAYS.values())]


@pytest.mark.slow
@settings(max_examples=1500, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(range(len(THINGS))), min_size=1, max_size=6))
def test_random_calls_with_many_operands(chosen):
    things = [THINGS[i] for i in chosen]
    assert _we_say(None, *map(as_operand, things)) == _numpy_says(np.result_type, *things)


def test_examples_where_nothing_but_asking_for_all_at_once_will_do():
    assert result_type("int8", "uint8", "float16", rules=NUMPY) == np.float16
    assert promote_types(promote_types("int8", "uint8", rules=NUMPY), "float16", rules=NUMPY) == np.float32
    # Order matters to NumPy here, and dtypes come first.
    array, dtype = np.zeros(1, bool), ARRAYS["uint1"].dtype
    for things in itertools.permutations([array, dtype, 1]):
        assert result_type(*things, rules=NUMPY) == np.result_type(*things)


@pytest.mark.one_in(4)
@every_function
def test_every_call_of_a_function(name):
    function = _function(name)
    different = {}
    for operands in itertools.product(VALUES, repeat=OPERATIONS[name].arity):
        theirs = _numpy_says(function, *(VALUES[operand] for operand in operands))
        ours = _we_say(name, *(OPERANDS[operand] for operand in operands))
        if ours != theirs:
            different[operands] = (ours or "refused", theirs or "refused")
    listed = [row for row in departures_of_version("numpy", VERSION) if row.cells and name == row.operations]
    covered = collections.Counter()
    for (left, *right), answers in different.items():
        covered.update(row for row in listed if row.covers(name, "function", left, "".join(right), *answers))
    assert covered == {row: row.cells for row in listed}
    assert covered.total() == len(different), different


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of NumPy's second names
def test_names_of_one_row_are_one_function():
    names = [(name, alias) for name in FUNCTIONS for alias in OPERATIONS[name].aliases if hasattr(np, alias)]
    assert {("trunc", "fix"), ("round", "around"), ("conj", "conjugate")} < {*names}
    for name, alias in names:
        for operands in itertools.product(VALUES, repeat=OPERATIONS[name].arity):
            values = [VALUES[operand] for operand in operands]
            assert _numpy_says(getattr(np, alias), *values) == _numpy_says(_function(name), *values), (alias, operands)


@pytest.mark.one_in(2)
@every_ufunc
def test_the_dtypes_that_a_function_computes_in(name):
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
            # Two Python ints are compared as the objects they are.
            assert set(operands) == {"int*"}
            assert ours[-1] is theirs[-1] is np.dtype(bool)
        else:
            assert ours == theirs, operands


# Around every place where an answer could change.
_EDGES = {edge for row in FORMATS if not row.is_inexact for edge in (row.min, row.max)} | {-(2**1024 - 2**970)}
INTS = sorted(
    {edge + step for edge in _EDGES for step in (-1, 0, 1)} | {2**1024 - 2**970 - 1, 2**1024 - 2**970, 10**400}
)
FLOATS = [0.0, -0.0, 448.0, 464.0, 1e5, 65519.0, 65520.0, -1e10, 1e39, 1e308, float("inf"), float("-inf"), float("nan")]


def _wraps_round(array, value):
    """Whether NumPy before 2.5 lets `where` change the number in silence: ints of 64 bits that it can cast at all."""
    takes_large_ints = array.dtype.isbuiltin == 1 and as_format(array.dtype).is_inexact
    return BEFORE_2_5 and -(2**63) <= value < 2**64 and not takes_large_ints


def _numpy_raises_about_the_power(name, call):
    """`np.power` of integers and a negative int: the types are fine, the computation is not."""
    if name != "pow" or not isinstance(call[1], int) or call[1] >= 0:
        return False
    try:
        np.power(*call)
    except ValueError as error:
        return "negative integer powers" in str(error)
    except (TypeError, OverflowError):
        return False
    return False


@pytest.mark.one_in(8)
@pytest.mark.parametrize("number_first", [False, True], ids=["array-number", "number-array"])
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if OPERATIONS[name].arity == 2])
def test_every_python_int_beside_every_format(name, number_first):
    function = _function(name)
    numbers = [(value, as_operand(value)) for value in INTS]
    wrapped = 0
    for array in ARRAYS.values():
        operand = as_operand(array)
        # NumPy keeps the loop it once found for "int", and finds another one where the first int that it ever sees is
        # beyond 64 bits: a small one comes first.
        of_small = _numpy_says(function, *((1, array) if number_first else (array, 1)))
        for value, number in numbers:
            call = (value, array) if number_first else (array, value)
            decision = NUMPY.decide(name, (number, operand) if number_first else (operand, number))
            if _numpy_raises_about_the_power(name, call):
                assert decision
                continue
            theirs = _numpy_says(function, *call)
            if name == "where" and theirs is not None and not decision:
                assert _wraps_round(array, value), call
                wrapped += 1
            else:
                assert (decision.dtype.name if decision else None) == theirs, call
            # Refused for the value exactly if a small one is not refused.
            assert bool(decision) or decision.verdict.overflow == (of_small is not None), call
    assert (wrapped > 0) == (name == "where" and BEFORE_2_5)


def test_the_departure_of_where_is_written_down():
    (departure,) = [row for row in DEPARTURES if row.rules == "numpy" and not row.cells]
    assert departure.operations == "where"
    array = ARRAYS["uint8"]
    assert not explain(array, 256, operation="where", rules=NUMPY)
    if BEFORE_2_5:
        assert np.where([False], array, 256)[0] == 0
    else:
        with pytest.raises(OverflowError):
            np.where([False], array, 256)


@every_function
def test_every_python_int_alone_and_beside_another_number(name):
    function, arity = _function(name), OPERATIONS[name].arity
    for value in INTS:
        others = [()] if arity == 1 else [(1,), (1.0,), (1j,), (True,)]
        for other in others:
            _numpy_says(function, *((1,) if arity == 1 else (1, *other)))
            theirs = _numpy_says(function, value, *other)
            ours = _we_say(name, *map(as_operand, (value, *other)))
            if name == "where" and BEFORE_2_5 and theirs is not None and ours is None:
                assert 2**63 <= value < 2**64  # the same departure: it wraps round to a negative number
                continue
            assert ours == theirs, (value, *other)


@pytest.mark.parametrize("name", [*FUNCTIONS, None])
def test_the_value_of_a_float_never_matters(name):
    if name is not None and OPERATIONS[name].arity == 1:
        assert {_we_say(name, as_operand(value)) for value in FLOATS} == {_numpy_says(_function(name), 1.0)}
        return
    function = np.result_type if name is None else _function(name)
    for array, value in itertools.product(ARRAYS.values(), FLOATS):
        assert _we_say(name, as_operand(array), as_operand(value)) == _numpy_says(function, array, value), (
            array,
            value,
        )


def test_result_type_ignores_values_but_of_a_single_int():
    for value in INTS:
        assert _we_say(None, as_operand(value)) == _numpy_says(np.result_type, value)
        for other in (*ARRAYS.values(), 1, 1.0, 1j):
            theirs = _numpy_says(np.result_type, other, value)
            assert _we_say(None, as_operand(other), as_operand(value)) == theirs, (other, value)


def test_types_stand_for_numbers_of_their_kind():
    for name, kind in (("int*", int), ("float*", float), ("complex*", complex)):
        for array in ARRAYS:
            assert _we_say("add", as_operand(array), as_operand(kind)) == _we_say(
                "add", OPERANDS[array], OPERANDS[name]
            )


def test_overflow_is_raised_as_both_errors_and_says_what_to_do():
    with pytest.raises(ScalarOverflowError, match="the Python int b is out of range for uint8") as caught:
        _ = explain(np.zeros(2, np.uint8), 256, operation="add", rules=NUMPY).dtype
    assert isinstance(caught.value, OverflowError)
    assert isinstance(caught.value, TypeError)
    assert str(caught.value.decision.fix) == "a.astype('uint16')"


def test_verdicts_are_kept_by_interval_and_not_by_value():
    array = as_operand(np.zeros(2, np.uint8))
    for value in range(256, 65_000):
        assert not NUMPY.decide("add", [array, as_operand(value)])
    small = [NUMPY.decide("add", [array, as_operand(value)]).verdict for value in (1000, 1001, 32_768, 40_000)]
    assert small[0] is small[1]
    assert small[2] is small[3]
    assert len({id(NUMPY.decide("add", [array, as_operand(v)]).verdict) for v in range(256, 65_000)}) < 10


@pytest.mark.slow
def test_calls_are_the_same_both_ways_round_exactly_where_numpy_makes_them_so():
    names = [*NAMES, *NUMBERS]
    one_way = {}
    for name in [*FUNCTIONS, None]:
        if name is not None and OPERATIONS[name].arity == 1:
            continue
        function = np.result_type if name is None else _function(name)
        for a, b in itertools.combinations(names, 2):
            theirs = _numpy_says(function, VALUES[a], VALUES[b]) == _numpy_says(function, VALUES[b], VALUES[a])
            ours = _we_say(name, OPERANDS[a], OPERANDS[b]) == _we_say(name, OPERANDS[b], OPERANDS[a])
            assert ours == theirs, (name, a, b)
            if not ours:
                one_way.setdefault(name, set()).update((a, b))
    assert None not in one_way
    assert "where" not in one_way
    # Only formats of ml_dtypes that NumPy takes for each other's equals: the first operand's loop is found first.
    assert set().union(*one_way.values()).isdisjoint([*OWN, *NUMBERS, "bfloat16"])


def test_numpys_pairs_do_not_associate_and_ours_do_not_either():
    def numpys(a, b):
        return np.promote_types(a, b).name

    def ours(a, b):
        return promote_types(a, b, rules=NUMPY).name

    assert len(OWN) ** 3 == 2744
    found = list(counterexamples(ours, OWN))
    assert found == list(counterexamples(numpys, OWN))
    assert len(found) == 28
    assert {example.law for example in found} == {"associative"}


@pytest.mark.one_in(20)
@pytest.mark.parametrize("name", [*FUNCTIONS, None])
def test_every_fix_is_executed_and_works(name):
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
        scope = {"np": np} | dict(zip("ab", (VALUES[operand] for operand in operands), strict=False))
        written = decision.fix.expressions()
        fixed = [eval(written.get(letter, letter), scope) for letter in "ab"[: len(operands)]]
        theirs = _numpy_says(function, *fixed)
        assert theirs is not None, (operands, written)
        assert _we_say(name, *map(as_operand, fixed)) == theirs, (operands, written)
    # Where a function takes no complex numbers a fix says `.real`, which NumPy does not know of those of ml_dtypes.
    foreign = [row.name for row in FORMATS if row.category == "complex" and not row.is_builtin]
    assert all({*foreign}.intersection(operands) for operands in unfixable)
    assert not unfixable or not NUMPY.decide(name, [OPERANDS["complex*"]] * OPERATIONS[name].arity)


@pytest.mark.slow
def test_fixes_of_overflows_are_executed_and_work():
    for array, value, name in itertools.product(ARRAYS.values(), INTS, ("add", "bitwise_and", "where")):
        decision = explain(array, value, operation=name, rules=NUMPY)
        if not decision and decision.fix is not None:
            scope = {"np": np, "a": array, "b": value}
            written = decision.fix.expressions()
            fixed = [eval(written.get(letter, letter), scope) for letter in "ab"]
            assert _numpy_says(_function(name), *fixed) == explain(*fixed, operation=name, rules=NUMPY).dtype.name
    assert str(explain(ARRAYS["int8"], 2**70, operation="add", rules=NUMPY).fix).startswith("a.astype('")
    assert str(explain(2**64, operation="sin", rules=NUMPY).fix) == "np.asarray(a, 'float32')"


def test_parts_of_complex_numbers_that_numpy_does_not_know_are_not_parts():
    array = np.full(1, 1 + 2j, "complex32")
    assert np.real(array).dtype == "complex32"
    assert complex(np.imag(array)[0]) == 0
    assert str(explain(array, operation="imag", rules=NUMPY).fix) == "a.astype('complex64')"


def test_what_numpy_does_not_have_are_the_functions_that_others_stand_in_for():
    assert {name for name in ELEMENTWISE if not hasattr(np, NUMPY_NAMES.get(name, name))} == NUMPY.stands_in.keys()
    decision = NUMPY.decide(Operation("polygamma", 1, Result.FLOAT, ("float",)), [as_operand("float32")])
    assert (decision.reason, decision.fix) == (("NumPy has no function polygamma",), None)


def test_accounts_name_the_loop_and_the_casts():
    decision = explain(ARRAYS["bfloat16"], ARRAYS["uint16"], operation="add", rules=NUMPY)
    assert str(decision).splitlines() == [
        "add(bfloat16, uint16) -> float32   [rules numpy]",
        "  a    bfloat16 -> float32",
        "  b    uint16 -> float32",
        "  why  float32 is the first loop of add with a safe cast from bfloat16 and uint16",
    ]
    refused = explain(ARRAYS["bfloat16"], ARRAYS["uint16"], rules=NUMPY)
    assert refused.reason == ("result_type needs a common type, and NumPy has none for bfloat16 and uint16",)
    assert str(refused.fix) == "a.astype('float32') and b.astype('float32')"
    with pytest.raises(OperandError):
        explain([1, 2], rules=NUMPY)
