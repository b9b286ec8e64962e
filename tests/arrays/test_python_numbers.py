"""Arrays of every library with Python numbers at the limits of dtypes, compared with NumPy and PyTorch."""

import itertools
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optional_packages import import_or_skip
from slowly import for_each, mostly_slow
from supremum import PromotionError, explain, use_rules
from supremum.arrays import asarray, ops
from supremum.arrays.wrapped import wrap

torch = import_or_skip("torch")
COMPARISONS = {
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
LIBRARIES = ("numpy", "jax", "torch")


def _held_by(library, array):
    return wrap(torch.asarray(array)) if library == "torch" else asarray(array, library=library)


@for_each("named", itertools.product(INTEGERS, LIBRARIES), one_in=6, one_slow_in=3)
def test_comparisons_of_integers_with_python_ints_are_exact(named):
    name, library = named
    if library == "torch" and name in ("uint16", "uint32", "uint64"):
        comparisons = {
            name: COMPARISONS[name] for name in ("equal", "not_equal")
        }  # torch has no kernels for the others
    else:
        comparisons = COMPARISONS
    ends = np.iinfo(name)
    values = np.array([ends.min, 0, 7, ends.max], name)
    numbers = {ends.min - 1, ends.min, 7, ends.max, ends.max + 1, 263, -1, 2**40, 2**70, -(2**70)}
    with use_rules("numpy"), jax.enable_x64(True):
        for shape, number in itertools.product(((4,), ()), sorted(numbers)):
            plain = values if shape else values[-1].reshape(())
            array = _held_by(library, plain)
            for operation, compare in comparisons.items():
                assert explain(array, number, operation=operation)
                calls = {"right": (compare, (plain, number), (array, number))}
                calls["left"] = (compare, (number, plain), (number, array))
                for side, (function, theirs, ours) in calls.items():
                    expected = np.asarray(function(*theirs))
                    for found in (function(*ours), ops.FUNCTIONS[operation](*ours)):
                        assert found.dtype == bool
                        np.testing.assert_array_equal(np.asarray(found), expected, f"{operation} {number} {side}")


@pytest.mark.parametrize("x64", [False, True])
def test_jitted_comparisons_of_integers_with_python_ints_are_exact(x64):
    with jax.enable_x64(x64), use_rules("numpy"):
        array = asarray(jnp.array([3, 200], "uint8"))
        for number, compare in itertools.product((256, -1, 2**70, 200), (operator.lt, operator.eq)):
            expected = compare(np.array([3, 200], "uint8"), number)
            jitted = jax.jit(lambda x, compare=compare, number=number: compare(x, number))(array)
            np.testing.assert_array_equal(np.asarray(jitted), expected)
            np.testing.assert_array_equal(np.asarray(compare(array, number)), expected)


def _outcome(function, *operands):
    try:
        found = function(*operands)
    except (OverflowError, RuntimeError, PromotionError):
        return "refused"
    return str(found.dtype).removeprefix("torch."), np.asarray(found).astype(float).ravel().tolist()


BOUNDS = (None, 0, -1, -129, 5, 127, 255, 256, 2**40, -(2**70), 2**70, 2.5, 1e6, float("inf"))


@pytest.mark.parametrize("library", mostly_slow(LIBRARIES, "numpy", "torch"))
@pytest.mark.parametrize("rules", ["numpy", "torch"])
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_clip_accepts_and_refuses_the_bounds_as_the_framework_does(rules, library):
    different = {}
    lows = BOUNDS[:: 2 if library == "jax" else 1]
    for name, low, high in itertools.product(("uint8", "int32", "float16"), lows, BOUNDS):
        if low is None and high is None:
            continue
        plain = np.array([0, 5, 100], name)
        judge, judged = (np.clip, plain) if rules == "numpy" else (torch.clamp, torch.asarray(plain))
        with use_rules(rules), jax.enable_x64(True):
            found = _outcome(ops.clip, _held_by(library, plain), low, high)
        expected = _outcome(judge, judged, low, high)
        if found != expected:
            different[name, low, high] = (found, expected)
    assert different == {}


def test_fix_of_clip_works():
    for rules, dtype in (("numpy", "uint16"), ("torch", "int16")):  # PyTorch does not clip uint16
        with use_rules(rules):
            a = asarray(np.array([3, 200], "uint8"))
            with pytest.raises(OverflowError) as refused:
                ops.clip(a, 300 if rules == "numpy" else 0, 300)
            assert str(refused.value.fix) == f"a.astype('{dtype}')"
            ops.clip(eval(str(refused.value.fix), {"a": a}), 0, 300)


HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
LIMITS = (131072.0, 2, 70000, 1e6, 1e5, 0.1, 1 / 3, 1e-8, 2049, 2**24 + 1, -1e6, 1e39, 2**40)
VALUES = (0.0, 1.0, 2.0, 0.5, -3.7, 1e-5, 2048.0, 60000.0, 0.377, -0.02)


@pytest.mark.parametrize("library", mostly_slow(LIBRARIES, "numpy", "torch"))
@pytest.mark.parametrize("name", HALVES)
def test_torch_rules_round_operations_of_16_bits_and_a_number_once(name, library):
    tensor = torch.tensor(VALUES).to(HALVES[name])
    array = (
        wrap(tensor)
        if library == "torch"
        else asarray(np.asarray(tensor.float()).astype(wrap(tensor).dtype), library=library)
    )
    calls = {"x * n": operator.mul, "x / n": operator.truediv, "x + n": operator.add, "x - n": operator.sub}
    calls |= {"n * x": lambda x, n: n * x, "n + x": lambda x, n: n + x}
    if library == "torch":  # the other libraries compute reciprocals and floor divisions differently
        calls |= {"n / x": lambda x, n: n / x, "x // n": operator.floordiv}
    different = {}
    with use_rules("torch"), np.errstate(all="ignore"):
        for (call, function), number in itertools.product(calls.items(), LIMITS):
            expected = function(tensor, number).double().numpy()
            found = np.asarray(function(array, number)).astype(float)
            if not np.array_equal(found, expected, equal_nan=True):
                different[call, number] = (found, expected)
    assert different == {}


@pytest.mark.parametrize("library", LIBRARIES)
def test_torch_rules_round_operations_of_16_bits_and_a_0d_array_once(library):
    array = _held_by(library, np.array([0.25, 3.0], "float16"))
    with use_rules("torch"), jax.enable_x64(True), np.errstate(all="ignore"):
        for scale in (np.array(131072.0), np.array(131072.0, "float32"), np.array(2**17)):
            held = _held_by(library, scale)
            assert np.asarray(array * held).tolist() == [32768.0, np.inf]
            assert (array * held).dtype == (array / held).dtype == "float16"
            # Torch's kernel reads only the second operand in higher precision.
            tensors = torch.asarray(np.array(held)), torch.asarray(np.array([0.25, 3.0], "float16"))
            np.testing.assert_array_equal(np.asarray(held * array), (tensors[0] * tensors[1]).numpy())


def test_large_number_divided_by_16_bits_does_not_overflow():
    """Compares values that are exact on every library, because torch multiplies by a rounded reciprocal."""
    with use_rules("torch"), np.errstate(all="ignore"):
        for library in LIBRARIES:
            found = 131072.0 / _held_by(library, np.array([4.0, 2.0], "float16"))
            assert np.asarray(found).tolist() == [32768.0, np.inf]


def test_numpy_and_jax_rules_round_the_number_first_on_torch():
    for rules, name in itertools.product(("numpy", "jax-x64"), ("multiply", "divide", "add")):
        with use_rules(rules), np.errstate(all="ignore"), jax.enable_x64(True):
            plain = np.array(VALUES, "float16")
            for number in LIMITS:
                ours = ops.FUNCTIONS[name](wrap(torch.asarray(plain)), number)
                theirs = ops.FUNCTIONS[name](asarray(plain), number)
                np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs), f"{rules} {name} {number}")


def test_logical_functions_under_the_rules_of_mlx_read_each_number_by_itself():
    zeros, numbers = np.zeros(2, "int8"), (2**40, -(2**63), 0.5, 1e-8, float("nan"), 1j, 0j, 1e-50)
    with use_rules("mlx"):
        for library in LIBRARIES:
            with jax.enable_x64(True):
                array = _held_by(library, zeros)
                found = [bool(np.asarray(ops.logical_or(array, number))[0]) for number in numbers]
            assert found == [True] * 6 + [False, False], library  # MLX reads a float as float32
        with pytest.raises(OverflowError, match="does not fit int64"):
            ops.logical_or(asarray(zeros), 2**63)
    assert [str(each) for each in explain("bool", 1e-50, operation="logical_or", rules="mlx").number_changes] == [
        "underflows to 0"
    ]
    for number in numbers[:-1]:
        for rules in ("mlx", "numpy"):
            assert explain("bool", number, operation="logical_or", rules=rules).number_changes == ()
