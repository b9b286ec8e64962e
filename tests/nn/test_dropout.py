import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn.arrays import built, data
from supremum import nn
from supremum.formats import as_format
from supremum.nn.functional.dropout import dropout
from supremum.nn.layers.dropout import Dropout

KEY = jax.random.key(0)


@pytest.mark.compiled
@pytest.mark.one_in(5)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("rate", [0.1, 0.25, 0.9])
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_values_are_dropped_or_scaled_with_one_rounding(dtype, rate, jitted):
    x = data(4000, dtype=dtype)
    got = (jax.jit(dropout, static_argnums=2) if jitted else dropout)(KEY, x, rate)
    assert got.dtype == dtype
    kept = np.asarray(got) != 0
    assert abs(kept.mean() - (1 - rate)) < 0.03
    want = np.asarray(x, "complex128")[kept] / (1 - rate)
    error = np.abs(np.asarray(got, "complex128")[kept] / want - 1).max() / as_format(dtype).eps
    assert error <= (0.51 if as_format(dtype).bits == 16 else 1.5)


def test_rates_0_and_1():
    x = data(50)
    np.testing.assert_array_equal(dropout(KEY, x, 0), x)
    np.testing.assert_array_equal(dropout(KEY, x, 1), jnp.zeros(50))
    np.testing.assert_array_equal(jax.grad(lambda x: dropout(KEY, x, 1.0).sum())(x), jnp.zeros(50))
    np.testing.assert_array_equal(dropout(KEY, x, np.float32(0.5)), dropout(KEY, x, 0.5))


def test_equal_keys_drop_equal_values():
    x = jnp.ones(100)
    np.testing.assert_array_equal(dropout(KEY, x, 0.5), dropout(jax.random.key(0), x, 0.5))
    assert not np.array_equal(dropout(KEY, x, 0.5), dropout(jax.random.key(1), x, 0.5))
    np.testing.assert_array_equal(dropout(jax.random.PRNGKey(0), x, 0.5), dropout(KEY, x, 0.5))


def test_broadcast_axes_drop_values_together():
    got = np.asarray(dropout(KEY, jnp.ones((40, 5, 6)), 0.5, broadcast_axes=(-1, 1)))
    assert all(len(np.unique(row)) == 1 for row in got)
    assert set(np.unique(got)) == {0, 2}
    one = np.asarray(dropout(KEY, jnp.ones((40, 5)), 0.5, broadcast_axes=0))
    assert np.all(one == one[0])


def test_dropped_values_have_zero_gradient_and_hide_nan():
    x = jnp.ones(200).at[:100].set(jnp.nan)
    got = dropout(KEY, x, 0.5)
    dropped = np.asarray(got) == 0
    assert 20 < dropped[:100].sum() < 80
    gradient = jax.grad(lambda x: dropout(KEY, x, 0.5).sum())(x)
    np.testing.assert_array_equal(gradient, np.where(dropped, 0, 2))


def test_empty_batch_gives_an_empty_result():
    assert dropout(KEY, jnp.zeros((0, 3)), 0.5).shape == (0, 3)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16", "infer"])
def test_layer_drops_only_in_training(policy):
    x = data(50, 4)
    layer = built(Dropout(0.5, broadcast_axes=1, dtype=policy, name="mine"), x)
    assert layer.name == "mine"
    dtype = layer.compute_dtype or "float32"
    for run in (nn.functional_call, jax.jit(nn.functional_call, static_argnums=0, static_argnames="training")):
        np.testing.assert_array_equal(run(layer, {}, x)[0], x.astype(dtype))
        got, _ = run(layer, {}, x, random_key=KEY, training=True)
        assert got.dtype == dtype
        assert set(np.unique(np.asarray(got, "float32") / np.asarray(x.astype(dtype), "float32"))) == {0, 2}
        assert np.all((np.asarray(got) == 0).all(1) | (np.asarray(got) != 0).all(1))


def test_layers_of_one_call_drop_different_values():
    net = nn.SequentialNetwork([Dropout(0.5), Dropout(0.5)])
    x = jnp.ones(2000)
    nn.initialize(net, x)
    got, _ = nn.functional_call(net, {}, x, random_key=KEY, training=True)
    assert abs((np.asarray(got) == 0).mean() - 0.75) < 0.05
    assert set(np.unique(got)) == {0, 4}


def test_no_key_is_needed_without_dropout():
    x = jnp.ones(3)
    np.testing.assert_array_equal(Dropout(0)(x, training=True), x)
    np.testing.assert_array_equal(Dropout(0.5)(x), x)
