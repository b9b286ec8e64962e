import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn.arrays import data
from supremum.errors import OperandError
from supremum.formats import as_format
from supremum.nn.layers.merging import Add, Average, Concatenate, Maximum, Multiply, Subtract

LAYERS = {
    "add": (Add, lambda a, b, *c: sum(c, a + b)),
    "subtract": (Subtract, lambda a, b: a - b),
    "multiply": (Multiply, lambda a, b, *c: np.prod([a, b, *c], 0)),
    "average": (Average, lambda *each: np.mean(each, 0)),
    "maximum": (Maximum, lambda *each: np.max(each, 0)),
    "concatenate": (Concatenate, lambda *each: np.concatenate(each, -1)),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16", "infer"])
@pytest.mark.parametrize("count", [2, 3])
def test_values_and_dtypes_match_numpy(name, policy, count):
    make, want = LAYERS[name]
    if name == "subtract" and count == 3:
        return
    layer = make(dtype=policy, name="mine")
    dtype = layer.compute_dtype or "float32"
    inputs = [data(4, 3, seed=seed) for seed in range(count)]
    expected = want(*(np.asarray(x).astype(as_format(dtype).dtype).astype("float64") for x in inputs))
    run = jax.jit(layer)
    for got in (run(inputs), (layer if policy == "float32" else run)(tuple(inputs))):
        assert got.dtype == dtype
        # Three inputs are rounded only once too.
        error = np.abs(np.asarray(got, "float64") - expected).max()
        assert error <= as_format(dtype).eps * (0.51 if as_format(dtype).bits == 16 else 2) * 4
    assert run([jnp.zeros((0, 3))] * count).shape == want(*[np.zeros((0, 3))] * count).shape
    assert layer.name == "mine"


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_long_sums_round_once(dtype):
    inputs = [jnp.abs(data(50, dtype=dtype, seed=seed)) for seed in range(20)]
    total = np.sum([np.asarray(x, "float64") for x in inputs], 0)
    for layer, want in ((Add(dtype=dtype), total), (Average(dtype=dtype), total / 20)):
        error = np.abs(np.asarray(layer(inputs), "float64") / want - 1).max()
        assert error <= 0.51 * as_format(dtype).eps


def test_averages_of_large_values_stay_finite():
    x = jnp.full(2, 6e4, "float16")
    assert Average(dtype="float16")([x, x]).tolist() == [6e4, 6e4]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LAYERS)
def test_integers_stay_integers_except_in_averages(name):
    make, want = LAYERS[name]
    inputs = [np.int32([[70_001, 5]]), np.int8([[3, 8]])]
    for policy in ("float32", "mixed_float16", "infer"):
        got = jax.jit(make(dtype=policy))(inputs)
        if name == "average":
            assert got.dtype == (make(dtype=policy).compute_dtype or "float32")
        else:
            assert got.dtype == "int32"
            np.testing.assert_array_equal(got, want(*map(np.asarray, inputs)).astype("int32"))


@pytest.mark.parametrize("name", LAYERS)
def test_integers_join_floats_and_complex_values(name):
    make, _ = LAYERS[name]
    layer = make(dtype="mixed_float16")
    integers, floats, complex_numbers = (data(1, 2, dtype=dtype) for dtype in ("int32", "float32", "complex64"))
    assert jax.eval_shape(layer, [integers, floats]).dtype == "float16"
    if name != "maximum":
        assert jax.eval_shape(layer, [floats, complex_numbers]).dtype == "complex64"


def test_bools_multiply_and_average_but_do_not_add():
    x, y = jnp.asarray([True, True, False]), jnp.asarray([True, False, False])
    assert Multiply()([x, y]).tolist() == [True, False, False]
    assert Maximum()([x, y]).tolist() == [True, True, False]
    assert Concatenate()([x, y]).dtype == bool
    assert Average()([x, y]).tolist() == [1, 0.5, 0]
    for layer in (Add(), Subtract()):
        with pytest.raises(OperandError, match=r"(Add|Subtract) needs numbers, got bools; use x.astype\('int32'\)"):
            layer([x, y])


def test_axes_of_length_1_broadcast():
    assert Multiply()([jnp.ones((2, 3, 4)), jnp.ones((2, 1, 4))]).shape == (2, 3, 4)
    assert Average()([jnp.ones((0, 3)), jnp.ones((1, 3))]).shape == (0, 3)


def test_concatenate_along_other_axes():
    x, y = data(2, 3, 4), data(2, 1, 4, seed=1)
    np.testing.assert_array_equal(Concatenate(1)([x, y]), np.concatenate([x, y], 1))
    np.testing.assert_array_equal(Concatenate(-2)([x, y]), np.concatenate([x, y], 1))
