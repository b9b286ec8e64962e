"""Every operation on JAX's arrays: dtypes of all traced pairs, and values, which are equal eagerly and jitted."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import memory
from arrays import calls
from arrays.calls import BINARY, CLASSIC, NUMBERS, REFUSED, UNARY
from float16_conversion import converts_to_float16_at_once
from supremum import PromotionError, get_rules, use_rules
from supremum.arrays import ELEMENTWISE_OPERATIONS, RuntimeDtypeError
from supremum.arrays.functions.losses import LOSSES
from supremum.arrays.wrapped import wrap
from supremum.formats import as_format

ABSENT = ("complex32", "bcomplex32")  # JAX does not have these dtypes
# Formats of each kind: our arrays treat all formats of a kind alike.
NAMES = [*CLASSIC, "uint2", "int4", "float6_e2m3fn", "float8_e4m3fn", "float8_e8m0fnu"]
WIDE = ("int64", "uint64", "float64", "complex128")
WEAK = {"int*": 1, "float*": 1.0, "complex*": 1j}
JAX_REFUSES = (TypeError, ValueError, NotImplementedError)
# All other rule sets lead to the same computations; the tests of NumPy's arrays cover their decisions.
ASKED = {True: ("jax-x64", "jax-x32", "numpy", "torch", "tf-rfc-all", "paddle"), False: ("jax-x32", "numpy", "torch")}
either_width = pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"])


def _plain(name):
    """Return the function of `jax.numpy` for an operation; for losses, that of their first step."""
    if name == "where":
        return lambda a, b: jnp.where(True, a, b)
    return (lambda a, b: abs(a - b)) if name in LOSSES else getattr(jnp, name)


def _lacks_at(x64):
    def lacks(name, compute, result, to_int):
        """Return whether JAX lacks one of the dtypes, or the function for these dtypes."""
        if {*map(str, compute), str(result)} & {*ABSENT, *(() if x64 else WIDE)}:
            return True
        function = (lambda a, _: a**1) if to_int else _plain(name)
        try:
            jax.eval_shape(function, *(jax.ShapeDtypeStruct((1,), dtype) for dtype in compute))
        except JAX_REFUSES:
            return True
        return False

    return lacks


class New:
    """Tells whether a call has a computation or casts that no earlier call had."""

    def __init__(self):
        self.seen = set()

    def __call__(self, name, call, said, compute):
        dtypes = tuple((getattr(each, "dtype", type(each)), getattr(each, "weak_type", None)) for each in call)
        kinds = {(name, compute, said), (dtypes, compute)}
        new = not kinds <= self.seen
        self.seen |= kinds
        return new


def _traced(x64, ask):
    """Run a function on traced arrays of every format and on weak ones."""

    def run(arrays, weak):
        ask({name: wrap(raw) for name, raw in arrays.items()}, {name: wrap(raw) for name, raw in weak.items()})
        return 0

    names = [name for name in NAMES if x64 or name not in WIDE]
    jax.eval_shape(run, {name: jax.ShapeDtypeStruct((1,), np.dtype(name)) for name in names}, WEAK)


@pytest.mark.slow
@either_width
def test_traced_operations_follow_the_decisions_of_the_rules(x64):
    """Covers each computation of each rule set and each cast of a pair of operands once, and all refusals."""
    cells, new = calls.Cells(_lacks_at(x64)), New()

    def ask(arrays, weak):
        for rules, name in itertools.product(ASKED[x64], (*BINARY, *UNARY)):
            rule_set, function = get_rules(rules), calls.function_of(name)
            operands = [*arrays.values(), *NUMBERS.values(), *(weak.values() if rule_set.weak_arrays else ())]
            with use_rules(rules):
                for call in itertools.product(operands, repeat=ELEMENTWISE_OPERATIONS[name].operation.arity):
                    if not any(hasattr(each, "unwrap") for each in call):
                        continue
                    said, compute = calls.decided(rule_set, name, call)
                    if (said == REFUSED and name not in ("add", "where")) or not new(name, call, said, compute):
                        continue
                    cells.ask(rule_set, name, function, call)

    with jax.enable_x64(x64):
        _traced(x64, ask)
    cells.check()
    assert cells.number["given"] > (3000 if x64 else 1500)
    assert cells.number["refused"] > 200


# Few dtypes, one for each way in which JAX compiles, because JAX compiles a program for each eager call.
VALUED = ("int32", "bfloat16", "complex64")
MIXED = ("bool", "uint8", "int64", "bfloat16", "float64", "complex64")
SOME = ("add", "divide", "pow", "equal", "exp")


def _values(name):
    """Return zero, one, the limits, subnormal numbers, infinities and NaN, if the format has them."""
    row = as_format(name)
    found = [0, 1, row.max, row.min]
    if row.is_inexact:
        found += [-1, 3, row.smallest_normal, row.smallest_subnormal, float("inf"), float("-inf"), float("nan")]
    return np.array(found, None if row.is_inexact else row.dtype).astype(row.dtype)


def _all_pairs(names):
    """Return operands that combine each value of the left format with each value of the right one."""
    left, *right = (_values(name) for name in names)
    if not right:
        return [left]
    return [np.repeat(left, len(right[0])), np.tile(right[0], len(left))]


def _same(a, b):
    """Return whether two arrays have the same bits; the bits of NaNs may differ."""
    a, b = np.asarray(a), np.asarray(b)
    number = a == a
    return a.dtype == b.dtype and np.array_equal(number, b == b) and a[number].tobytes() == b[number].tobytes()


def _asked_for_values(x64):
    for name in (*BINARY, *UNARY) if x64 else SOME:
        if name == "add" and x64:
            yield name, list(itertools.product(MIXED, repeat=2))
        else:
            yield name, [(each,) * ELEMENTWISE_OPERATIONS[name].operation.arity for each in VALUED]


@pytest.mark.slow
@either_width
def test_eager_and_jitted_results_are_equal_to_the_last_bit(x64):
    rules = "jax-x64" if x64 else "jax-x32"
    different, number = {}, 0
    with jax.enable_x64(x64), use_rules(rules):
        for name, pairs in _asked_for_values(x64):
            memory.give_back()
            function, eager, operands = calls.function_of(name), {}, {}
            for pair in pairs:
                call = [wrap(jnp.asarray(raw)) for raw in _all_pairs(pair)]
                try:
                    eager[pair], operands[pair] = function(*call), call
                except (PromotionError, RuntimeDtypeError):
                    continue
            jitted = jax.jit(lambda operands, function=function: {p: function(*c) for p, c in operands.items()})(
                operands
            )
            for pair, result in eager.items():
                number += 1
                said, _ = calls.decided(get_rules(rules), name, operands[pair])
                for found in (result, jitted[pair]):
                    if (found.dtype, found.weak_type, found.shape == ()) != said or not _same(result, found):
                        different[name, *pair] = (said, result, found)
    assert different == {}
    assert number > (150 if x64 else 10)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_python_floats_are_rounded_as_in_jax_without_a_warning(dtype):
    """Two of the numbers are just above a tie of a 16-bit float, and become a tie when rounded to float32 first."""
    x = wrap(jnp.zeros(2, dtype))
    for number in (0.1, 1 + 2**-11 + 2**-30, 1 + 2**-8 + 2**-30, 1e300, -1e300, float("inf"), float("nan")):
        for x64 in (False, True, False):
            with jax.enable_x64(x64):
                with warnings.catch_warnings(action="ignore"):
                    expected = np.asarray(x.unwrap() + number).astype("float64")
                    if dtype == "float16" and x64 and converts_to_float16_at_once():
                        expected = np.asarray(x.unwrap() + jnp.float32(number).astype(dtype)).astype("float64")
                for result in (x + number, number + x, jax.jit(lambda a, number=number: a + number)(x)):
                    assert result.dtype == dtype
                    assert np.array_equal(np.asarray(result).astype("float64"), expected, equal_nan=True)
