"""The dtype and weak flag of every operation of `jax.numpy`, compared with the installed JAX, x64 on and off."""

import collections
import contextlib
import itertools

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

from conformance.departures import DEPARTURES, departures_of_version, expected_cells
from jax_modes import jax_as
from slowly import for_each
from supremum import explain, get_rules, result_type
from supremum.formats import FORMATS, as_format
from supremum.operands import as_operand
from supremum.operations import ELEMENTWISE, OPERATIONS
from supremum.rules import JAX_ALIASES, JAX_STRICT_X64, JAX_X32, JAX_X64

JAX_NAMES = {
    "pow": "power", "atan2": "arctan2", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}  # fmt: skip
# The departures in the installed version of JAX.
LISTED = departures_of_version("jax", jax.__version_info__)
ASKED = [name for name in ELEMENTWISE if name not in JAX_X64.stands_in]
# The operations with rules that no other operation has: for them all pairs are compared. For the rest, only equal
# operands and pairs with one of `PARTNERS` are.
IN_FULL = [
    "add", "divide", "pow", "equal", "bitwise_and", "bitwise_left_shift", "copysign", "where", "logaddexp",
    "floor_divide", "maximum", "hypot",
]  # fmt: skip
PARTNERS = {"int8", "uint32", "bfloat16", "float32", "complex64", "int*", "float*"}
FORMAT_NAMES = [row.name for row in FORMATS if row.name not in ("complex32", "bcomplex32")]
NUMBERS = {"int*": 1, "float*": 1.0, "complex*": 1j}
REFUSED = "refused"
JAX_REFUSES = (TypeError, ValueError, NotImplementedError)  # its TypePromotionError is a ValueError
pytestmark = pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning")  # JAX's, with x64 off
either_width = pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"])


RULES = {True: JAX_X64, False: JAX_X32}


def _function(name):
    if name == "where":
        return lambda a, b: jnp.where(jnp.ones((), bool), a, b)
    return getattr(jnp, JAX_NAMES.get(name, name))


def _formats(x64):
    return [name for name in FORMAT_NAMES if x64 or name not in JAX_X32.held_as]


def _arrays(x64):
    return [jax.ShapeDtypeStruct((2,), np.dtype(name)) for name in _formats(x64)]


def _written(dtype, weak):
    return f"{dtype}*" if weak and np.dtype(dtype) != np.dtype(bool) else str(dtype)


def _theirs(function, *operands):
    try:
        result = function(*operands)
    except JAX_REFUSES:
        return REFUSED
    return _written(result.dtype, result.weak_type)


def _ours(name, *operands, rules):
    decision = rules.decide(name, [as_operand(operand) for operand in operands])
    if decision and decision.dtype == bool:
        assert not decision.weak
    return _written(decision.dtype, decision.weak) if decision else REFUSED


def _is_full(name):
    return name in IN_FULL or OPERATIONS[name].arity == 1


def _is_asked(name, left, right):
    return name in IN_FULL or left == right or not PARTNERS.isdisjoint([left, right])


def _cells(name, x64):
    """Every call of an operation as `(left, right, ours, theirs)`: arrays, Python numbers and weak arrays.

    One abstract evaluation of all calls takes a tenth of the time of one per call. Without the `jax.jit` that JAX puts
    around its own functions, it takes half of that again. A test below checks that this `jit` makes no difference.
    """
    cells, function = [], _function(name)

    def ask(arrays, weak_arrays):
        operands = [
            *zip(_formats(x64), arrays, strict=True), *NUMBERS.items(), *zip(NUMBERS, weak_arrays, strict=True)
        ]  # fmt: skip
        if not _is_full(name):
            del operands[-len(NUMBERS) :]
        for call in itertools.product(operands, repeat=OPERATIONS[name].arity):
            left, right = call[0][0], call[1][0] if len(call) == 2 else ""
            if not right or _is_asked(name, left, right):
                values = [value for _, value in call]
                theirs = _theirs(function, *values)
                cells.append((left, right, _ours(name, *values, rules=RULES[x64]), theirs))

    with jax.disable_jit():
        jax.eval_shape(ask, _arrays(x64), list(NUMBERS.values()))
    return cells


@for_each("name", ASKED, one_in=16, one_slow_in=4)
def test_dtypes_and_weak_flags_agree_with_installed_jax_except_departures(name):
    rows = [row for row in LISTED if name in row.operations.split()]
    unexplained, covered, asked = [], collections.Counter(), 0
    for x64 in (True, False):
        with jax.enable_x64(x64):
            for left, right, ours, theirs in _cells(name, x64):
                asked += 1
                if ours != theirs:
                    why = [row for row in rows if row.covers(name, row.form, left, right, ours, theirs)]
                    covered.update(why)
                    if len(why) != 1:
                        unexplained.append((JAX_X64.name if x64 else JAX_X32.name, left, right, ours, theirs))
    assert asked == _number_of_cells(name)
    assert unexplained == []
    assert covered == expected_cells({row: row.cells for row in rows}, covered)


def _number_of_cells(name):
    formats = len(FORMAT_NAMES), len(FORMAT_NAMES) - len(JAX_X32.held_as)
    if _is_full(name):
        return sum((count + 6) ** OPERATIONS[name].arity for count in formats)
    others = [count + 3 - len(PARTNERS) for count in formats]  # compared only with themselves and with `PARTNERS`
    return sum((count + 3) ** 2 - other * (other - 1) for count, other in zip(formats, others, strict=True))


def test_stand_ins_are_for_exactly_the_functions_that_jax_numpy_lacks():
    absent = {name for name in ELEMENTWISE if not hasattr(jnp, JAX_NAMES.get(name, name))}
    assert absent == JAX_X64.stands_in.keys() == JAX_X32.stands_in.keys() == JAX_STRICT_X64.stands_in.keys()


DOZEN = [
    "bool", "uint8", "uint32", "int4", "int8", "int16", "int32", "float8_e5m2", "bfloat16", "float16", "float32",
    "complex64",
]  # fmt: skip


NEIGHBOURS = list(zip(DOZEN, [*DOZEN[1:], DOZEN[0]], strict=True))
WITH_NUMBERS = list(itertools.product(["bool", "int8", "bfloat16", "complex64"], NUMBERS))
REAL_CALLS = [*NEIGHBOURS, *WITH_NUMBERS, ("int8", "int8"), ("int*", "int*"), ("int*", "float*"), ("int*", "int8")]


def _values():
    return {name: jnp.ones(2, name) for name in DOZEN} | NUMBERS


@pytest.mark.one_in(2)
@either_width
def test_jax_gives_the_same_dtypes_with_and_without_its_own_jit(x64):
    """For every operation: neighbouring dtypes, Python numbers with dtypes, and Python numbers alone."""

    def says(arrays):
        values = dict(zip(DOZEN, arrays, strict=True)) | NUMBERS
        for name in ASKED:
            for call in dict.fromkeys(call[: OPERATIONS[name].arity] for call in REAL_CALLS):
                answers[name, call] = _theirs(_function(name), *(values[each] for each in call))

    found = []
    with jax.enable_x64(x64):
        arrays = [jax.ShapeDtypeStruct((2,), np.dtype(name)) for name in DOZEN]
        for context in (contextlib.nullcontext(), jax.disable_jit()):
            answers = {}
            with context:
                jax.eval_shape(says, arrays)
            found.append(answers)
    assert found[0] == found[1]
    assert len(found[0]) > 1000


FEW = ("add", "divide", "pow", "equal")


@pytest.mark.slow
@for_each("name, x64", itertools.product(FEW, (True, False)))
def test_eager_results_agree_with_installed_jax(name, x64):
    with jax.enable_x64(x64):
        values = _values()
        different = {
            (left, right): (ours, theirs)
            for left, right in REAL_CALLS
            if (ours := _ours(name, values[left], values[right], rules=RULES[x64]))
            != (theirs := _theirs(_function(name), values[left], values[right]))
        }
    assert different == {}


@for_each("name, x64", itertools.product(FEW, (True, False)), one_in=4)
def test_jitted_results_agree_with_installed_jax(name, x64):
    """One compiled program runs every call that is not refused, and the dtypes of its results are compared."""
    with jax.enable_x64(x64):
        values = _values()
        said = {call: _ours(name, *(values[each] for each in call), rules=RULES[x64]) for call in REAL_CALLS}
        accepted = [call for call, ours in said.items() if ours != REFUSED]
        assert len(accepted) > 20

        @jax.jit
        def run(arrays):
            known = arrays | NUMBERS
            return {call: _function(name)(*(known[each] for each in call)) for call in accepted}

        results = run({dtype: values[dtype] for dtype in DOZEN})
    theirs = {call: _written(result.dtype, result.weak_type) for call, result in results.items()}
    assert {call: (said[call], theirs[call]) for call in accepted if said[call] != theirs[call]} == {}


STRICT = [name for name in JAX_ALIASES["jax"] if "strict" in name]
SEPARATE = [*STRICT, "jax-explicit-x64"]
"""The rule sets that the tests above do not compare."""
separate_rule_sets = pytest.mark.parametrize("rules", SEPARATE)


def _arrays_of(rules):
    names = _formats("x64" in rules)
    return {each: jax.ShapeDtypeStruct((2,), np.dtype(each)) for each in names}


@for_each(
    "name, rules",
    itertools.product(("add", "divide", "equal", "maximum", "pow", "where"), SEPARATE),
    one_in=8,
    one_slow_in=4,
)
def test_binary_operations_agree_with_separate_rule_sets_except_departures(name, rules):
    """Compares dtypes and weak flags for pairs of arrays, Python numbers and weak arrays."""
    different, refused = {}, 0
    rows = [row for row in LISTED if name in row.operations.split()]

    def ask(arrays, weak_arrays):
        nonlocal refused
        operands = [*arrays.items(), *NUMBERS.items(), *zip(NUMBERS, weak_arrays, strict=True)]
        for (left, a), (right, b) in itertools.product(operands, repeat=2):
            ours, theirs = _ours(name, a, b, rules=get_rules(rules)), _theirs(_function(name), a, b)
            refused += theirs == REFUSED
            if ours != theirs and not any(row.covers(name, row.form, left, right, ours, theirs) for row in rows):
                different[left, right] = (ours, theirs)

    with jax_as(rules), jax.disable_jit():
        jax.eval_shape(ask, _arrays_of(rules), list(NUMBERS.values()))
    assert different == {}
    assert refused > 100


@pytest.mark.parametrize("rules", JAX_ALIASES["jax"])
def test_weak_arrays_of_unusual_dtypes_agree_with_installed_jax(rules):
    convert = jax.extend.core.primitives.convert_element_type_p
    answers = set()

    def ask(given):
        weak = [
            convert.bind(given, new_dtype=np.dtype(each), weak_type=True, sharding=None)
            for each in ("int8", "uint32", "int16", "float16", "bfloat16", "float32", "complex64")
        ]
        others = [jnp.zeros(2, "int8"), jnp.zeros(2, "float16"), *NUMBERS.values()]
        for a, b in itertools.product([*weak, *others], repeat=2):
            theirs = _theirs(jnp.add, a, b)
            assert _ours("add", a, b, rules=get_rules(rules)) == theirs, (a, b)
            answers.add(theirs)

    with jax_as(rules):
        jax.eval_shape(ask, jax.ShapeDtypeStruct((2,), np.dtype("float32")))
    assert (REFUSED in answers) == (rules in STRICT)


@pytest.mark.slow
def test_sums_of_jax_and_numpy_arrays_agree_with_strict_jax():
    """With x64 off, JAX first narrows NumPy's 64-bit arrays. With explicit 64 bits our rules keep them, unlike JAX."""
    names = [name for name in FORMAT_NAMES if as_format(name).is_builtin]
    for rules in ("jax-strict-x64", "jax-strict-x32"):
        with jax_as(rules):
            for left, right in itertools.product(_arrays_of(rules).keys() & {*names}, names):
                a, b = jnp.ones(1, left), np.ones(1, right)
                assert _ours("add", a, b, rules=get_rules(rules)) == _theirs(jnp.add, a, b), (rules, left, right)


@pytest.mark.one_in(4)
@separate_rule_sets
def test_unary_operations_agree_with_separate_rule_sets_except_departures(rules):
    names = [name for name in ASKED if OPERATIONS[name].arity == 1]
    asked = 0

    def ask(arrays, weak_arrays):
        nonlocal asked
        operands = [*arrays.items(), *NUMBERS.items(), *zip(NUMBERS, weak_arrays, strict=True)]
        for name, (written, operand) in itertools.product(names, operands):
            asked += 1
            ours, theirs = _ours(name, operand, rules=get_rules(rules)), _theirs(_function(name), operand)
            if ours != theirs:
                why = [row for row in listed if row.covers(name, row.form, written, "", ours, theirs)]
                assert why, (name, written, ours, theirs)
                covered.update(why)

    own = departures_of_version(rules, jax.__version_info__)
    listed, covered = [*LISTED, *own], collections.Counter()
    with jax_as(rules):
        jax.eval_shape(ask, _arrays_of(rules), list(NUMBERS.values()))
    assert asked == len(names) * (len(_arrays_of(rules)) + 6)
    assert [covered[row] for row in own] == [row.cells for row in own]


BOUNDS = (-(2**63), -(2**31), 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1, 127, 255, 0, 10**40)
INTS = sorted({bound + step for bound in BOUNDS for step in (-1, 0, 1)})
TAKING_INTS = ["bool", "int8", "uint8", "int32", "uint32", "float32"]


@either_width
@pytest.mark.parametrize("name", ["add", "equal", "divide", "bitwise_left_shift"])
def test_python_ints_overflow_exactly_where_jax_raises(name, x64):
    function, different = _function(name), {}

    def theirs_or_overflow(*operands):
        try:
            return _theirs(function, *operands)
        except OverflowError:
            return "overflow"

    def ask(arrays):
        for (dtype, array), value in itertools.product(zip(TAKING_INTS, arrays, strict=True), INTS):
            for call in ((array, value), (value, array)):
                decision = RULES[x64].decide(name, [as_operand(operand) for operand in call])
                ours = "overflow" if decision.verdict.overflow else _ours(name, *call, rules=RULES[x64])
                assert not (decision and decision.verdict.overflow)
                if ours != (theirs := theirs_or_overflow(*call)):
                    different[dtype, value, call[0] is value] = (ours, theirs)

    with jax.enable_x64(x64):
        jax.eval_shape(ask, [jax.ShapeDtypeStruct((2,), np.dtype(dtype)) for dtype in TAKING_INTS])
    assert different == {}


@pytest.mark.one_in(2)
@either_width
def test_reasons_mention_python_ints_that_wrap(x64):
    wrapped = 0
    with jax.enable_x64(x64):
        for dtype, value in itertools.product(["int8", "uint8", "int32", "uint32"], INTS):
            array = jnp.zeros(2, dtype)
            decision = RULES[x64].decide("add", [as_operand(array), as_operand(value)])
            if decision:
                assert decision.dtype == np.dtype(dtype)
                wraps = int(jnp.add(array, value)[0]) != value
                wrapped += wraps
                assert any("wraps it around" in why for why in decision.reason) == wraps, (dtype, value)
        assert wrapped > 0
        assert int(jnp.add(jnp.int8(1), 1000)) == -23
    assert "b is out of range for int8, and JAX wraps it around silently" in str(
        explain(np.int8(1), 1000, operation="add", rules="jax-x32")
    )


@either_width
def test_result_type_ignores_the_values_of_python_ints(x64):
    rules = JAX_X64 if x64 else JAX_X32
    with jax.enable_x64(x64):
        for dtype, value in itertools.product(TAKING_INTS, INTS):
            asked = explain(dtype, value, rules=rules)
            assert asked.verdict == explain(dtype, 0, rules=rules).verdict
            assert result_type(dtype, value, rules=rules) == jnp.result_type(np.dtype(dtype), value), (dtype, value)


def test_eager_power_departs_from_jax_as_listed():
    (departure,) = [row for row in DEPARTURES if (row.rules, row.form) == ("jax", "eager")]
    base, exponent = jnp.ones(2, departure.left), jnp.asarray(2, departure.right.removesuffix("[]"))
    assert explain(base, exponent, operation="pow", rules="jax-x32").dtype == departure.ours
    assert jax.jit(jnp.power)(base, exponent).dtype == departure.ours
    assert jnp.power(base, exponent).dtype == departure.theirs


@pytest.mark.parametrize("base", [2**70, -(2**64)])
def test_pow_overflows_for_a_large_base_and_not_for_a_large_exponent(base):
    with pytest.raises(OverflowError):
        jnp.power(base, 2)
    assert explain(base, 2, operation="pow", rules="jax-x32").verdict.overflow
    assert jnp.power(jnp.ones(2, "int8"), 2**40).dtype == explain("int8", 2**40, operation="pow", rules="jax-x32").dtype
    with pytest.raises(TypeError):
        jnp.power(jnp.ones(2, "int8"), -1)
    assert not explain("int8", -1, operation="pow", rules="jax-x32")
