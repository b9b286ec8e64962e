"""Dtypes that JAX does not support are refused before the computation, and never narrowed silently."""

import itertools
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from arrays import calls, libraries
from arrays.calls import RULE_SETS
from slowly import for_each
from supremum import PromotionError, get_rules, use_rules
from supremum.arrays import (
    ComputationError,
    InPlaceError,
    NarrowingError,
    RuntimeDtypeError,
    asarray,
    ops,
)
from supremum.arrays.wrapped import wrap
from supremum.formats import COLUMN_FORMATS
from supremum.operands import as_operand

WIDE = ("int64", "uint64", "float64", "complex128")
# Calls with narrower operands and a result or computation in 64 bits.
WIDENING = {
    "numpy": [("int32", "float32"), ("uint32", "int32"), ("int32", "complex64")],
    "jax-x64": [("uint32", "int32"), ("uint32", "int8"), ("uint32", "int16")],
    "tf-rfc-all": [("int32", "float32"), ("uint32", "int32")],
}
BOTH = ("jax.config.update('jax_enable_x64', True)", "supremum.use_rules('jax-x32')")


@pytest.fixture(autouse=True)
def _x64_off():
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("error")  # JAX warns when it narrows 64 bits
        yield


def _pairs():
    return [(rules, *pair) for rules, pairs in WIDENING.items() for pair in pairs]


@pytest.mark.parametrize(("rules", "left", "right"), _pairs())
def test_computations_in_64_bits_are_refused_and_both_fixes_work(rules, left, right):
    a, b = wrap(jnp.ones(2, left)), wrap(jnp.ones(2, right))
    decided = get_rules(rules).decide("add", (a.key.operand, b.key.operand)).dtype
    for call in (lambda: a + b, lambda: a.unwrap() + b, lambda: ops.add(a, b), lambda: jax.jit(ops.add)(a, b)):
        with use_rules(rules), pytest.raises(RuntimeDtypeError) as caught:
            call()
        assert str(decided) in str(caught.value)
        assert all(fix in str(caught.value) for fix in BOTH)
    with use_rules("jax-x32"):
        assert (a + b).dtype.itemsize <= 8
    with jax.enable_x64(True), use_rules(rules):
        assert (a + b).dtype == decided


def test_fixes_work_exactly_as_printed():
    a, b = wrap(jnp.ones(2, "int32")), wrap(jnp.ones(2, "float32"))
    with use_rules("numpy"), pytest.raises(RuntimeDtypeError) as caught:
        _ = a + b
    config, rules = re.search(r"(jax\.config\.\S+ True\)), or (supremum\.\S+\))", str(caught.value)).groups()
    with eval(rules, {"supremum": supremum}):
        assert (a + b).dtype == "float32"
    before = jax.config.jax_enable_x64
    try:
        eval(config, {"jax": jax})
        with use_rules("numpy"), jax.enable_x64(True):  # the fixture's scope overrides the global flag
            assert (a + b).dtype == "float64"
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("value", [2**40, -(2**31) - 1, 2**63])
def test_asarray_refuses_python_ints_beyond_32_bits(value):
    """Rules with 64 bits need a dtype that the library lacks; for the other rules the number is out of range."""
    for rules in ("jax-x64", "numpy"):
        with use_rules(rules), pytest.raises((RuntimeDtypeError, PromotionError, OverflowError)):
            asarray(value, library="jax")
    for rules in ("jax-x32", "jax"):
        with use_rules(rules), pytest.raises((PromotionError, OverflowError)):
            asarray(value, library="jax")


@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_dtypes_and_arrays_are_refused(dtype):
    small, wide = wrap(jnp.ones(2, "int8")), np.ones(2, dtype)
    for call in (
        lambda: small.astype(dtype),
        lambda: asarray([1, 2], dtype, library="jax"),
        lambda: asarray(wide, library="jax"),
        lambda: asarray(wrap(wide), library="jax"),
        lambda: asarray(jnp.ones(2, "int8"), dtype),
    ):
        with pytest.raises(RuntimeDtypeError, match=dtype):
            call()
    with jax.enable_x64(True):
        assert small.astype(dtype).dtype == dtype
        assert asarray(wide, library="jax").dtype == dtype


@for_each("rules", ["jax", *(name for name in RULE_SETS if name != "jax-x32")], one_in=0)
def test_64_bit_numpy_arrays_are_narrowed_only_if_the_rules_decide_so(rules):
    """The NumPy array is on either side of an array of JAX; values that 32 bits cannot hold raise."""
    values = {
        "int64": np.array([2**40, 3]),
        "float64": np.array([1e300, 0.1]),
        "uint64": np.array([2**63, 5], "uint64"),
    }
    wrong, adopted, refused = [], 0, 0
    with use_rules(rules):
        for dtype, (wide, name) in itertools.product(
            ("int8", "uint32", "float16", "complex64"), itertools.product(values, ("add", "less"))
        ):
            small, other = wrap(jnp.ones(2, dtype)), values[wide]
            for call in ((small, other), (other, small), (small, wrap(other)), (other[0], small)):
                # NumPy makes an array of its scalar on the left of a comparison.
                read = get_rules().read if name == "add" else lambda value: value
                said = get_rules().decide(
                    name, [each.key.operand if hasattr(each, "key") else as_operand(read(each)) for each in call]
                )
                try:
                    with np.errstate(all="ignore"):
                        result = calls.OPERATORS[name](*call)
                except NarrowingError:
                    adopted += 1
                    if not said or not wide.endswith("int64") or not said.casts[0].lossy | said.casts[1].lossy:
                        wrong.append((name, dtype, wide, "narrowing", said))
                except PromotionError:
                    refused += 1
                    if said:
                        wrong.append((name, dtype, wide, "refused"))
                except RuntimeDtypeError:
                    refused += 1
                    absent = {*WIDE, *map(str, COLUMN_FORMATS)}
                    if not said or not {*map(str, said.verdict.compute), str(said.dtype)} & absent:
                        wrong.append((name, dtype, wide, "lacking", said and said.dtype))
                else:
                    adopted += 1
                    if not said or result.dtype != said.dtype or result.dtype.itemsize > 8 or result.dtype in WIDE:
                        wrong.append((name, dtype, wide, result, said))
    assert wrong == []
    narrows_64_bits = rules in ("jax", "keras")  # "jax" with x64 off, "keras" always
    assert (refused == 0) == narrows_64_bits
    assert adopted > 50 or not narrows_64_bits


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_integers_that_the_narrower_dtype_cannot_hold_raise(library):
    """JAX itself would wrap them."""
    small = asarray(np.ones(2, "int8"), library=library)
    for value, lost in ((np.array([1, 2**40]), 2**40), (np.array([-(2**31) - 1, 0]), -(2**31) - 1)):
        for call in (
            lambda v=value: small + v,
            lambda v=value: wrap(v) * small,
            lambda v=value: ops.where(True, small, v),
        ):
            with use_rules("jax-x32"), pytest.raises(NarrowingError, match=str(lost)) as error:
                call()
        cast = eval(
            "value" + str(error.value).partition("cast first with ")[2].partition("; to keep")[0], {"value": value}
        )
        with use_rules("jax-x32"):
            assert (small + cast).dtype == "int32"
        with jax.enable_x64(True), use_rules("jax-x64"):
            assert np.asarray(small + value).tolist() == [1 + each for each in value.tolist()]
    with use_rules("jax-x32"):
        assert (small + np.array([2**31 - 1, -(2**31)])).dtype == "int32"
        with pytest.warns(RuntimeWarning, match="overflow"):
            assert np.isinf(np.asarray(small + np.array([1e300, 1])))[0]


def test_in_place_operators_and_at_updates_refuse_64_bits():
    array = wrap(jnp.zeros(2, "int32"))
    with use_rules("jax-x64"), pytest.raises((RuntimeDtypeError, InPlaceError)):
        array += np.array([2**40, 1])
    for rules, errors in (("jax-x64", ()), ("jax-x32", (PromotionError,))):
        with use_rules(rules), pytest.raises((RuntimeDtypeError, InPlaceError, *errors)):
            array.at[0].set(2**40)
    assert array.tolist() == [0, 0]


def test_cached_calls_with_x64_on_are_refused_with_x64_off():
    a, b = wrap(jnp.ones(2, "int32")), wrap(jnp.ones(2, "float32"))
    with use_rules("numpy"):
        for _ in range(2):
            with jax.enable_x64(True):
                assert (a + b).dtype == "float64"
                assert (a / 2).dtype == "float64"
            for call in (lambda: a + b, lambda: a / 2, lambda: jax.jit(lambda a, b: a + b)(a, b)):
                with pytest.raises(RuntimeDtypeError, match="x64"):
                    call()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_function_without_a_kernel_in_jax_says_so(dtype):
    square = supremum.asarray(np.ones((2, 2)), dtype, library="jax")
    with pytest.raises(RuntimeDtypeError, match=f"jax has no solve for {dtype}") as caught:
        supremum.namespace("jax").linalg.solve(square, square)
    # JAX 0.10 raises NotImplementedError, and 0.12 TypeError.
    assert isinstance(caught.value.__cause__, (NotImplementedError, TypeError))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("compiled", [lambda function: function, jax.jit], ids=["eager", "jitted"])
def test_shapes_that_do_not_fit_are_not_taken_for_a_missing_kernel(dtype, compiled):
    square, vector = (supremum.asarray(np.ones(shape), dtype, library="jax") for shape in ((2, 2), 3))
    with pytest.raises(ComputationError, match="add") as caught:
        compiled(lambda a, b: a + b)(square, vector)
    assert isinstance(caught.value.__cause__, (TypeError, ValueError))


@pytest.mark.parametrize("name", libraries.NAMES)
def test_errors_of_asarray_name_the_function_and_its_arguments(name):
    values, message = np.ones(2, "float32"), rf"^asarray\(float32\[2\], device='moon'\) failed in {name}"
    with libraries.library(name) as xp:
        for call in (
            lambda: xp.asarray(values, device="moon"),
            lambda: supremum.asarray(values, library=name, device="moon"),
            lambda: supremum.asarray(xp.asarray(values), device="moon"),
        ):
            with pytest.raises(ComputationError, match=message):
                call()
