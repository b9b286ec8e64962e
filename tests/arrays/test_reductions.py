"""Reductions of arrays follow the active rules and not the library."""

import importlib.util
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from slowly import for_each, slow
from supremum import PromotionError, explain, use_rules
from supremum.arrays import RuntimeDtypeError, asarray, namespace
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.operations import REDUCTIONS
from supremum.rules import rule_names

DTYPES = ("bool", "uint8", "int8", "int32", "int64", "bfloat16", "float16", "float32", "float64", "complex64")
RULES = [name for name in rule_names() if name != "jax"]
HAS_TORCH = importlib.util.find_spec("torch") is not None
TORCH = pytest.param("torch", marks=pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed"))
LIBRARIES = ["numpy", "jax", TORCH]


def _outcome(call):
    """The dtype of a result, `"refused"` by the rules, or `"absent"` from the library."""
    try:
        return str(call().dtype)
    except PromotionError:
        return "refused"
    except RuntimeDtypeError:
        return "absent"


@pytest.mark.parametrize("library", ["numpy", slow("jax"), TORCH])
@for_each("rules, x64", itertools.product(RULES, (True, False)), one_in=6, one_slow_in=6)
def test_reductions_have_the_dtype_that_the_rules_decide(rules, library, x64):
    compared = 0
    with jax.enable_x64(x64):
        xp = namespace(library)
        for dtype in DTYPES:
            if library == "jax" and not x64 and dtype.endswith("64") and dtype != "complex64":
                continue
            array = xp.asarray([[1, 0], [1, 1]], dtype=dtype)
            for name in REDUCTIONS:
                options = {"axis": 1}
                with use_rules(rules):
                    found = _outcome(lambda: getattr(xp, name)(array, **options))  # noqa: B023
                decision = explain(array, operation=name, rules=rules)
                if found == "absent":  # JAX lacks the dtype with x64 off, or the library has no kernel
                    wide = [each for each in (*decision.verdict.compute, decision.dtype) if _is_wide(each)]
                    assert wide if library == "jax" else library == "torch", (name, dtype)
                else:
                    assert found == (str(decision.dtype) if decision else "refused"), (name, dtype)
                    compared += bool(decision)
    assert compared > 10


def _is_wide(dtype):
    row = as_format(dtype)
    return row.component.bits > 32 if row.is_inexact else row.bits > 32


def test_values_and_dtypes_are_those_of_the_framework_of_the_rules():
    array = np.array([100, 100, -7], "int8")
    with use_rules("tf-off"):
        assert supremum.asarray(array).sum().dtype == np.int8  # NumPy gives int64
        assert int(supremum.asarray(array).sum()) == 193 - 256  # wraps as in TensorFlow
        assert int(supremum.asarray(array).mean()) == 64
        assert int(supremum.asarray(-array).mean()) == -64  # truncates as C does
    with use_rules("torch"), pytest.raises(PromotionError, match="torch has no mean of int8"):
        supremum.asarray(array).mean()
    with use_rules("paddle"):
        assert supremum.asarray(array.astype("int32")).sum().dtype == np.int64
        assert supremum.asarray(array > 0).sum().dtype == np.int64
    with use_rules("jax-x32"):
        assert supremum.asarray(array).mean().dtype == np.float32  # NumPy gives float64
    with use_rules("numpy"):
        assert np.sum(supremum.asarray(array)).dtype == np.int64


@pytest.mark.parametrize("rules", ["mlx", "tinygrad"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_float_means_of_integers_add_integers_and_divide_floats(library, rules):
    xp = namespace(library)
    array, large = xp.asarray(np.array([[3, 0, 1]] * 2, "int8")), xp.asarray(np.full(3, 2**31 - 1, "int32"))
    with use_rules(rules):
        assert xp.mean(array).item() == pytest.approx(4 / 3)
        assert xp.mean(array, axis=1, keepdims=True).shape == (2, 1)
        assert xp.mean(array[0, 0]).item() == 3.0
        if library == "jax":
            assert jax.jit(lambda x: xp.mean(x).unwrap())(array).item() == pytest.approx(4 / 3)
        assert xp.mean(large).item() == pytest.approx((2**31 - 3) / 3)  # the sum wraps around in int32
        with np.errstate(invalid="ignore"):
            assert np.isnan(xp.mean(large[:0]).item())
        assert str(xp.mean(array).dtype) == "float32"


@pytest.mark.parametrize("library", LIBRARIES)
def test_dtype_argument_overrides_the_rules(library):
    xp = namespace(library)
    array = xp.asarray([100, 100], dtype="int8")
    for rules in ("numpy", "torch", "tf-off", "paddle", "jax-x32", "array-api"):
        with use_rules(rules):
            assert [int(xp.sum(array, dtype=dtype)) for dtype in ("int8", "int16")] == [-56, 200]
            assert xp.prod(array, dtype="float32").dtype == np.float32
            assert xp.cumulative_sum(array, dtype="float16").dtype == np.float16
            assert xp.sum(xp.asarray([True]), dtype="int32").dtype == np.int32  # TensorFlow refuses to sum bools


def test_dtype_argument_must_be_one_that_the_reduction_of_the_rules_returns():
    """As in PyTorch; NumPy and JAX take means of integers in integers."""
    x = asarray(np.array([1, 2, 4], "float32"))
    for mean in (np.mean, np.nanmean):
        with use_rules("torch"), pytest.raises(PromotionError, match="torch has no mean of int32"):
            mean(x, dtype="int32")
        with use_rules("numpy"):
            assert (mean(x, dtype="int32").dtype, mean(x, dtype="int32").item()) == (np.int32, 2)


@pytest.mark.parametrize("module", [np, jnp], ids=["numpy", "jax"])
def test_variances_take_the_dtypes_of_the_framework(module):
    names = {np: "numpy", jnp: "jax-x64"}
    taken = refused = 0
    with use_rules(names[module]), jax.enable_x64(True), np.errstate(all="ignore"):
        for name, own, dtype in itertools.product(
            ("std", "var"), ("int8", "float16", "float64", "complex64"), ("float16", "float32", "float64", "complex64")
        ):
            raw = module.asarray(np.array([1, 2, 4]).astype(own))
            if own == "complex64" != dtype:  # as in JAX
                with pytest.raises(PromotionError, match="of complex elements needs a complex dtype="):
                    getattr(np, name)(asarray(raw), dtype=dtype)
                refused += 1
                continue
            found, wanted = getattr(np, name)(asarray(raw), 0, dtype), getattr(module, name)(raw, 0, dtype)
            assert (found.dtype, found.item()) == (wanted.dtype, pytest.approx(wanted.item(), rel=1e-6))
            taken += 1
        with pytest.raises(ArgumentError, match="dtype must be a float or complex dtype, got int32"):
            asarray(raw).std(dtype="int32")
    assert (taken, refused) == (26, 6)


def test_sums_of_float16_are_accumulated_as_the_rules_decide():
    halves = np.array([2048, 1, -2048], "float16")
    for library, rules in itertools.product(("numpy", "jax"), ("jax-x32", "numpy", "torch")):
        with use_rules(rules):
            assert float(namespace(library).sum(halves)) == 1
    with use_rules("tf-off"):
        assert explain("float16", operation="sum").casts[0].target == np.float16


@for_each("name", REDUCTIONS, one_in=8, one_slow_in=3)
def test_eager_and_jitted_reductions_agree(name):
    accepted = 0
    for rules, dtype in itertools.product(("jax-x32", "torch", "tf-off"), ("int8", "float16", "bool")):
        array = supremum.asarray(jnp.asarray([1, 0, 1], dtype))

        def call(x):
            return getattr(x.__array_namespace__(), name)(x)

        with use_rules(rules):
            try:
                eager = call(array)
            except (PromotionError, RuntimeDtypeError) as error:
                with pytest.raises(type(error)):
                    jax.jit(call)(array)
                continue
            jitted = jax.jit(call)(array)
        assert (eager.dtype, eager.weak_type) == (jitted.dtype, jitted.weak_type)
        assert np.array_equal(np.asarray(eager), np.asarray(jitted))
        accepted += 1
    assert accepted >= 3


def test_compiled_reduction_has_the_operations_of_handwritten_jax():
    def ours(x):
        with use_rules("jax-x32"):
            return supremum.asarray(x).sum(axis=0).unwrap()

    array = jnp.ones((4, 4), "float16")
    text = [
        jax.jit(f).lower(array).as_text().replace("jit_ours", "jit__lambda_") for f in (ours, lambda x: x.sum(axis=0))
    ]
    assert [each.count("stablehlo.reduce") for each in text] == [1, 1]
    assert [each.count("stablehlo.convert") for each in text] == [2, 2]


def test_a_sum_with_a_dtype_accumulates_as_the_rules_decide():
    for rules, total in (("numpy", 5000.0), ("tf-all", 2048.0)):  # adding 1 to 2048 in float16 changes nothing
        with use_rules(rules):
            found = namespace("numpy").sum(np.ones((5000, 2), "float16"), axis=0, dtype="float16")
        assert (found.dtype, found.tolist()) == ("float16", [total, total])
