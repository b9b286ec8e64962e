import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.formats import as_format
from supremum.nn.functional.pooling import avg_pool, global_average_pool, global_max_pool, max_pool
from supremum.nn.layers.pooling import AvgPool, GlobalAveragePool, MaxPool

FLOATS = ["float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2"]
INTEGERS = ["int4", "uint4", "int8", "uint8", "int16", "uint32", "bool"]


def data(*shape, dtype="float32", seed=0):
    return jax.device_put((np.random.default_rng(seed).normal(size=shape) * 3).astype(as_format(dtype).dtype))


def windows(x, window, strides, pads):
    """Return the values of every window without padding, as a dict from positions to lists of arrays by channel."""
    space = x.shape[1:-1]
    counts = [
        (size + sum(pad) - span) // step + 1 for size, span, step, pad in zip(space, window, strides, pads, strict=True)
    ]
    for place in itertools.product(*map(range, counts)):
        starts = [p * step - pad[0] for p, step, pad in zip(place, strides, pads, strict=True)]
        cut = [slice(max(start, 0), start + span) for start, span in zip(starts, window, strict=True)]
        yield place, counts, np.asarray(x)[(slice(None), *cut)]


def pooled(x, window, strides, pads, function):
    result = None
    for place, counts, values in windows(x, window, strides, pads):
        if result is None:
            result = np.zeros((x.shape[0], *counts, x.shape[-1]), np.result_type(function(np.ones(1, "float64"), 0)))
        result[(slice(None), *place)] = function(np.asarray(values).astype("float64"), tuple(range(1, x.ndim - 1)))
    return result


GEOMETRIES = {
    "1d": ((2, 7, 3), (3,), 2, 1, ((2,), [(1, 1)])),
    "2d": ((2, 5, 4, 2), (2, 3), (2, 1), [(0, 1), (2, 0)], ((2, 1), [(0, 1), (2, 0)])),
    "3d touching": ((1, 4, 4, 2, 2), (2, 2, 2), None, "VALID", ((2, 2, 2), [(0, 0)] * 3)),
    "same": ((2, 5, 3), (2,), 2, "SAME", ((2,), [(0, 1)])),
}


@pytest.mark.one_in(7)
@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_maxima_keep_the_dtype(name, dtype):
    shape, window, strides, padding, (steps, pads) = GEOMETRIES[name]
    x = np.abs(data(*shape)).astype(as_format(dtype).dtype)
    x = x if dtype in INTEGERS else -x
    got = jax.jit(lambda x: max_pool(x, window, strides=strides, padding=padding))(x)
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got, "float64"), pooled(x, window, steps, pads, np.max))


@pytest.mark.one_in(7)
@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "bool", "complex64"])
@pytest.mark.parametrize("include", [True, False])
def test_averages_match_numpy(name, dtype, include):
    shape, window, strides, padding, (steps, pads) = GEOMETRIES[name]
    x = np.asarray(data(*shape)).astype(as_format(dtype).dtype)
    size = np.prod(window)

    def function(values, axes):
        return values.sum(axes) / size if include and axes else values.mean(axes)

    run = jax.jit(lambda x: avg_pool(x, window, strides=strides, padding=padding, count_include_pad=include))
    parts = (np.real(x), np.imag(x)) if dtype == "complex64" else (x,)
    got = run(x)
    assert got.dtype == (dtype if as_format(dtype).is_inexact else "float32")
    for part, values in zip((np.real(got), np.imag(got)), parts, strict=False):
        want = pooled(values, window, steps, pads, function)
        np.testing.assert_allclose(np.asarray(part, "float64"), want, atol=2 * as_format(got.dtype).eps * 3)


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_averages_of_4096_values_round_once(dtype):
    x = np.abs(data(1, 4096, 2, dtype=dtype))
    want = np.asarray(x, "float64").mean(1)
    for got in jax.jit(lambda x: (avg_pool(x, (4096,))[:, 0], global_average_pool(x)))(x):
        assert got.dtype == dtype
        assert np.abs(np.asarray(got, "float64") / want - 1).max() <= 0.51 * as_format(dtype).eps


def test_averages_of_large_float16_values_stay_finite():
    x = jnp.full((1, 4, 4, 1), 6e4, "float16")
    assert avg_pool(x, (2, 2)).ravel().tolist() == [6e4] * 4
    assert global_average_pool(x).ravel().tolist() == [6e4]


def test_large_integers_are_averaged_before_rounding():
    x = jnp.asarray([100_000, -100_000, 7, 9]).reshape(1, 4, 1)
    assert avg_pool(x, (2,), dtype="float16").ravel().tolist() == [0, 8]
    assert AvgPool((2,), dtype="float16")(x).ravel().tolist() == [0, 8]
    assert GlobalAveragePool(dtype="float16")(x).tolist() == [[4]]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_gradients_go_to_the_pooled_inputs(dtype):
    x = jnp.arange(6.0).reshape(1, 6, 1).astype(dtype)
    for form, want in (
        (lambda x: max_pool(x, (3,)), [0, 0, 1, 0, 0, 1]),
        (lambda x: avg_pool(x, (2,)), [0.5] * 6),
        (lambda x: avg_pool(x, (2,), padding=1, count_include_pad=False), [1, 0.5, 0.5, 0.5, 0.5, 1]),
        (lambda x: global_max_pool(x), [0] * 5 + [1]),
        (lambda x: global_average_pool(x) * 6, [1] * 6),
    ):
        gradient = jax.grad(lambda x: form(x).astype("float32").sum())(x)  # noqa: B023
        assert gradient.dtype == dtype
        np.testing.assert_allclose(gradient.ravel().astype("float32"), want, rtol=as_format(dtype).eps)


def test_nan_reaches_the_result():
    x = jnp.asarray([1.0, np.nan, 2.0, 3.0]).reshape(1, 4, 1)
    for form in (max_pool, avg_pool):
        assert np.isnan(form(x, (2,)).ravel()).tolist() == [True, False]


@pytest.mark.parametrize("form", [max_pool, avg_pool])
def test_empty_inputs_give_empty_results(form):
    assert form(jnp.zeros((0, 4, 2)), (2,)).shape == (0, 2, 2)
    assert form(jnp.zeros((3, 1, 2)), (2,)).shape == (3, 0, 2)
    assert form(jnp.zeros((3, 0, 2)), (2,), padding="SAME").shape == (3, 0, 2)
    assert global_max_pool(jnp.zeros((0, 4, 2))).shape == global_average_pool(jnp.zeros((0, 4, 2))).shape == (0, 2)


def test_global_pools_match_numpy():
    x = data(2, 3, 4, 5)
    np.testing.assert_array_equal(global_max_pool(x), np.asarray(x).max((1, 2)))
    np.testing.assert_allclose(global_average_pool(x), np.asarray(x).mean((1, 2)), atol=1e-6)
    assert global_max_pool(x.astype("int8")).dtype == "int8"
    assert global_average_pool(x.astype("int8")).dtype == "float32"


def test_options_reach_the_functions():
    x = data(1, 5, 1)
    np.testing.assert_array_equal(
        AvgPool((3,), strides=1, padding=((1, 2),), count_include_pad=False)(x),
        avg_pool(x, (3,), strides=(1,), padding=[(1, 2)], count_include_pad=False),
    )
    np.testing.assert_array_equal(
        MaxPool((3,), strides=1, padding="SAME")(x), max_pool(x, (3,), strides=(1,), padding="SAME")
    )
    assert nn.MaxPool((2, 2)).strides == (2, 2)
