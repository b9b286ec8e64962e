"""Operators give the same dtype on both sides, with arrays of NumPy and JAX, scalars, numbers and other objects."""

import functools
import itertools
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arrays import calls
from arrays.calls import BINARY, CLASSIC, OPERATORS, REFUSED
from conformance.assignment_judge import IN_PLACE
from optional_packages import import_or_skip
from slowly import for_each, slow
from supremum import OperandError, PromotionError, SupremumError, explain, get_rules, namespace, use_rules
from supremum.arrays import Array, DeviceError, InPlaceError, TensorInPlaceError, asarray, ops
from supremum.arrays.functions.losses import LOSSES
from supremum.arrays.wrapped import wrap
from supremum.errors import ArgumentError

RULES = ("numpy", "jax-x64", "torch", "tf-rfc-safe")
IN_FULL = ("add", "divide", "pow", "less", "bitwise_and")
SYMBOLS = {name: function for name, function in OPERATORS.items() if name in BINARY}
every_rule_set = pytest.mark.parametrize("rules", RULES)


def _compared(rules, name, function, left, right, different):
    said, _ = calls.decided(get_rules(rules), name, (left, right))
    found = calls.called(function, (left, right))
    if found not in (said, calls.LACKING if said != REFUSED else REFUSED):
        shown = tuple(f"{type(each).__name__} of {getattr(each, 'dtype', each)}" for each in (left, right))
        different[(name, *shown)] = (said, found)
    return found != calls.LACKING


def _library(name):
    """A function that makes a raw array of two ones, and one that returns the library's own function of a name."""
    if name == "numpy":
        return lambda dtype: np.ones(2, dtype), lambda operation: getattr(np, operation)
    import_or_skip("torch")
    from conformance import torch_judge as judge

    return lambda dtype: judge.torch.ones(2, dtype=judge.DTYPES[dtype]), judge.ASKED.__getitem__


@pytest.mark.one_slow_in(3)
@pytest.mark.one_in(4)
@pytest.mark.parametrize("library", ["numpy", slow("torch")])
@every_rule_set
def test_raw_arrays_and_scalars_on_both_sides_follow_the_rules(rules, library):
    make, function_of = _library(library)
    different, given = {}, 0
    with use_rules(rules), np.errstate(all="ignore"):
        for name, (a, b) in itertools.product(SYMBOLS, itertools.product(CLASSIC, repeat=2)):
            left, right = make(a), make(b)
            sides = [(left, wrap(right)), (wrap(left), right)]
            if name in IN_FULL:
                for side in sides:
                    _compared(rules, name, function_of(name), *side, different)
                sides.append((wrap(left), np.ones(2, b)[0]))
            if name in IN_FULL and name != "less":  # NumPy makes an array of its scalar on the left of a comparison
                sides.append((np.ones(2, a)[0], wrap(right)))
            if name in IN_FULL and library != "numpy":
                sides += [(np.ones(2, a), wrap(right)), (left, wrap(np.ones(2, b)))]
            for side in sides:
                given += _compared(rules, name, SYMBOLS[name], *side, different)
    assert different == {}
    assert given > 1000


@every_rule_set
def test_numpy_ufuncs_follow_the_rules(rules):
    different, asked = {}, 0
    with use_rules(rules), np.errstate(all="ignore"):
        for name in BINARY:
            function = getattr(np, name, None)
            if not isinstance(function, np.ufunc):
                continue
            asked += 1
            for a, b in (("int8", "uint8"), ("float32", "float32"), ("bfloat16", "float16"), ("bool", "int64")):
                _compared(rules, name, function, np.ones(2, a), wrap(np.ones(2, b)), different)
    assert different == {}
    assert asked == len([name for name in BINARY if name not in ("where", *LOSSES)])


@pytest.mark.one_slow_in(3)
@pytest.mark.slow
@every_rule_set
def test_traced_jax_arrays_on_both_sides_follow_the_rules(rules):
    """The other operand is an array of JAX or of NumPy, which is converted to JAX."""
    different, given = {}, 0

    def ask(raws):
        nonlocal given
        for name, (a, b) in itertools.product(IN_FULL, itertools.product(CLASSIC, repeat=2)):
            given += _compared(rules, name, SYMBOLS[name], raws[a], wrap(raws[b]), different)
            if name == "add":
                _compared(rules, name, SYMBOLS[name], wrap(raws[a]), raws[b], different)
                _compared(rules, name, SYMBOLS[name], raws[a], wrap(np.ones(2, b)), different)
                _compared(rules, name, SYMBOLS[name], np.ones(2, a), wrap(raws[b]), different)
                _compared(rules, name, SYMBOLS[name], np.ones((), a)[()], wrap(raws[b]), different)
        return 0

    with jax.enable_x64(True), use_rules(rules):
        jax.eval_shape(ask, {name: jax.ShapeDtypeStruct((2,), np.dtype(name)) for name in CLASSIC})
    assert different == {}
    assert given > 400


def test_concrete_jax_arrays_on_both_sides_follow_the_rules():
    different, given = {}, 0
    with jax.enable_x64(True), use_rules("torch"):
        right = wrap(jnp.ones(2, "float16"))
        for name, a in itertools.product(("add", "less"), ("int8", "bfloat16", "float32")):
            for left in (jnp.ones(2, a), np.ones(2, a), np.ones(2, a)[0], jnp.ones((), a)):
                given += _compared("torch", name, SYMBOLS[name], left, right, different)
                given += _compared("torch", name, SYMBOLS[name], right, left, different)
    assert different == {}
    assert given > 20


@pytest.mark.one_slow_in(3)
@pytest.mark.one_in(4)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@every_rule_set
def test_in_place_operators_keep_the_dtype_or_raise(rules, library):
    make, _ = _library(library)
    wrong, kept, refused = [], 0, 0
    names = IN_PLACE if library == "numpy" else ("add", "multiply", "divide", "bitwise_and")
    with use_rules(rules), np.errstate(all="ignore"):
        for name, (a, b) in itertools.product(names, itertools.product(CLASSIC, repeat=2)):
            plain, array, other = make(a), wrap(make(a)), make(b)
            if calls.called(SYMBOLS[name], (array, other)) == calls.LACKING:
                continue
            is_stored = explain(plain, other, operation=name, into=plain)
            for target, value in ((plain, wrap(other)), (array, wrap(other)), (array, other)):
                expected = SYMBOLS[name](wrap(make(a)), value).astype(a) if is_stored else None
                try:
                    result = IN_PLACE[name](target, value)
                except (PromotionError, TensorInPlaceError):
                    refused += 1
                    if expected is not None or np.asarray(wrap(target)).tolist() != [1, 1]:
                        wrong.append((name, a, b, "refused"))
                    continue
                kept += 1
                changed = wrap(target)
                if result is not target or changed.dtype != a or changed.tolist() != expected.tolist():
                    wrong.append((name, a, b, result))
                changed.unwrap()[...] = 1
    assert wrong == []
    assert kept > 100
    assert refused > 100


def test_in_place_operators_create_a_new_jax_array():
    with use_rules("torch"):
        plain = before = jnp.ones(2, "int8")
        plain += asarray(np.ones(2, "uint8"))
        assert type(plain) is Array
        assert plain.dtype == "int16"
        assert before.dtype == "int8"
        array = first = wrap(jnp.ones(2, "float32"))
        array += np.ones(2, "int8")
        assert array is not first
        assert (first.tolist(), array.tolist()) == ([1.0, 1.0], [2.0, 2.0])
        small = wrap(jnp.ones(2, "int8"))
        with pytest.raises(InPlaceError, match=r"b.astype\('int8'\)"):
            small += jnp.ones(2, "float32")


def test_in_place_operators_refuse_a_larger_shape():
    a = wrap(np.ones(1, "float32"))
    with use_rules("torch"), pytest.raises(ArgumentError, match="shape"):
        a += np.ones(3, "float32")


MASKED = np.ma.masked_array([1.0, 2.0], mask=[False, True])
MATRIX = np.ones((2, 2)).view(np.matrix)


@for_each(
    "name, other, order",
    itertools.product(("add", "subtract", "divide", "less", "equal", "pow"), (MASKED, MATRIX), ("left", "right")),
)
def test_masked_arrays_and_matrices_are_refused(name, other, order):
    a = wrap(np.ones(other.shape))
    call = (other, a) if order == "left" else (a, other)
    # A matrix on the left of ** raises NumPy's own error, which asks for an integer exponent.
    with pytest.raises(TypeError, match=r"masked|matrix|exponent must be an integer"):
        SYMBOLS[name](*call)


NON_NUMERIC = {
    "objects": np.array([1, "a"], object),
    "strings": np.array(["a", "b"]),
    "times": np.array(["2026-01-01", "2026-01-02"], "datetime64[D]"),
    "spans": np.array([1, 2], "timedelta64[s]"),
    "fields": np.zeros(2, [("a", "i4")]),
    "voids": np.zeros(2, "V4"),
}


@for_each("other", NON_NUMERIC.values())
def test_non_numeric_arrays_are_refused(other):
    for backend in (np, jnp):
        a = wrap(backend.ones(2, "float32"))
        for name in ("add", "equal", "less"):
            for call in ((a, other), (other, a)):
                # A structured array on the left raises NumPy's own error.
                with pytest.raises(TypeError, match=r"must be numeric|Cannot compare structured or void"):
                    SYMBOLS[name](*call)
        with pytest.raises(OperandError, match="must be numeric"):
            ops.add(a, other)
        with pytest.raises(OperandError):
            Array(other)


def test_random_keys_of_jax_are_refused():
    a, key = wrap(jnp.ones((), "float32")), jax.random.key(0)
    for call in ((a, key), (key, a)):
        with pytest.raises(OperandError, match="must be a numeric array"):
            operator.add(*call)


class Stranger:
    def __radd__(self, other):
        return "answered"

    def __eq__(self, other):
        return "compared"

    __hash__ = None


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_other_objects_are_refused_or_asked_for_the_result(library):
    a = asarray([1.0, 2.0], library=library)
    for other in ([1.0, 2.0], (1.0, 2.0), None, "1", {1}, object(), b"1"):
        for call in ((a, other), (other, a)):
            with pytest.raises(TypeError):
                operator.add(*call)
            with pytest.raises(TypeError):
                operator.lt(*call)
        for call in (ops.add, operator.contains):
            with pytest.raises(OperandError, match="argument 1"):
                call(a, other)
    assert 2 in a
    assert 3 not in a
    with pytest.raises(OperandError, match="equal: argument 1 must be an array"):
        operator.contains(a, Stranger())
    assert a + Stranger() == "answered"
    assert (a == Stranger()) == "compared"
    # Python's own answers for unrelated objects.
    assert (a == object()) is False
    assert (a != None) is True  # noqa: E711
    assert (a == "text") is False


def test_numpy_float64_counts_as_an_array_and_not_as_a_python_float():
    """`np.float64` is a subclass of `float`."""
    with use_rules("numpy"):
        assert (np.float64(2) + wrap(np.ones(2, "float32"))).dtype == "float64"
        assert (2.0 + wrap(np.ones(2, "float32"))).dtype == "float32"


def test_jax_arrays_on_different_devices_are_refused():
    first, second = jax.devices()[:2]
    a, b = (wrap(jax.device_put(jnp.ones(2), device)) for device in (first, second))
    for call in (lambda: a + b, lambda: b * a.unwrap(), lambda: a.unwrap() - b, lambda: jnp.ones(2) + b + a):
        with pytest.raises(DeviceError, match=r"(?i)(TFRT_CPU_|cpu:)0.*\.to_device"):
            call()
    assert (a + b.to_device(first)).unwrap().devices() == {first}
    for result in (b + 1.0, np.ones(2, "float32") + b, b + np.ones(2, "float32")):
        assert result.unwrap().devices() == {second}


TYPED = {
    "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal",
    "-": "subtract", "/": "divide",
}  # fmt: skip
# Python 3.13 loads two local names by one instruction.
PLACES = {
    "names": "{a} {symbol} {b}",
    "local names": "(lambda a, b: {a} {symbol} {b})(a, b)",
    "names of a closure": "(lambda a, b: lambda: {a} {symbol} {b})(a, b)()",
    "truth": "[0 for _ in 'a' if {a} {symbol} {b}]",
}


def _refusal(place, a, symbol, b):
    """The error of a program that compares `a` with `b`, given as the values of the two names."""
    with pytest.raises(SupremumError) as caught:
        eval(PLACES[place].format(a="a", symbol=symbol, b="b"), {"a": a, "b": b})
    return caught.value


def _summary(error, symbol, a, b):
    """The first lines of a refusal, its last reason, and its fix, which must work if typed in this order."""
    call, *operands = str(error).splitlines()[:3]
    cast = str(error.fix)
    code = f"{cast} {symbol} b" if cast.startswith("a") else f"a {symbol} {cast}"
    assert eval(code, {"a": a, "b": b}).shape == (3,)
    return call.partition(" ->")[0], *(each.strip() for each in operands), error.reason[-1].partition(";")[0], cast


@pytest.mark.parametrize("place", PLACES)
def test_refusals_have_the_operands_in_the_order_in_which_they_were_typed(place):
    """Python evaluates `1e300 < array` as `array > 1e300`, and also `raw < array` if the library is JAX."""
    array, of_jax, raw = asarray(np.ones(3, "float16")), asarray(jnp.ones(3, "float16")), jnp.ones(3, "int8")
    cases = [
        ("tf-rfc-all", 1e300, array, "float*, float16", "a    float* (1e+300)", "b    float16",
         "out of range: a", "b.astype('float64')"),
        ("tf-rfc-all", array, 1e300, "float16, float*", "a    float16", "b    float* (1e+300)",
         "out of range: b", "a.astype('float64')"),
        ("jax-strict", raw, of_jax, "int8, float16", "a    int8", "b    float16",
         "the lattice has no upper bound of int8 and float16", "a.astype('float16')"),
        ("jax-strict", of_jax, raw, "float16, int8", "a    float16", "b    int8",
         "the lattice has no upper bound of float16 and int8", "b.astype('float16')"),
    ]  # fmt: skip
    for rules, a, b, operands, *expected in cases:
        for symbol, name in TYPED.items():
            with use_rules(rules):
                summary = _summary(_refusal(place, a, symbol, b), symbol, a, b)
            assert summary == (f"{name}({operands})", *expected)


@pytest.mark.parametrize("library", ["numpy", "jax", slow("torch")])
def test_failures_have_the_operands_in_the_order_in_which_they_were_typed(library):
    if library == "torch":
        import_or_skip("torch")
    ones = namespace(library).ones
    left, right = ones(2, dtype="float32").unwrap(), ones(3, dtype="float32")
    typed = f"{left.dtype}[2], float32[3]"
    for symbol, name in TYPED.items():
        assert str(_refusal("names", left, symbol, right)).startswith(f"{name}({typed}) failed in {library}: ")


def test_comparisons_that_were_not_typed_have_the_operands_in_the_order_of_the_call():
    array = asarray(np.ones(3, "float16"))
    with use_rules("array-api"):
        for call in (
            lambda: operator.lt(1e300, array),
            lambda: array.__gt__(1e300),
            lambda: functools.reduce(operator.lt, (1e300, array)),
            lambda: max([1e300, array], key=lambda each: each),
        ):
            with pytest.raises(PromotionError) as caught:
                call()
            assert str(caught.value).startswith("greater(float16, float*)")
        # A list compares its elements, and the instruction is about the lists.
        numbers, arrays = [1e300], [array]
        for call in (lambda: numbers < arrays, lambda: numbers == arrays, lambda: numbers.index(array)):
            with pytest.raises(PromotionError) as caught:
                call()
            assert str(caught.value).startswith("equal(float16, float*)")
