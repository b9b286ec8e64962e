from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn import arrays
from nn.attention_reference import additive
from supremum import nn
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.nn.layer import Layer
from supremum.nn.layers.attention import KeyValueCache, MultiHeadAttention

every_policy = pytest.mark.parametrize(
    "policy", ["float32", "mixed_float16", "mixed_bfloat16", "bfloat16", "infer", "float16"]
)
BATCH, LENGTH, FEATURES = 2, 6, 8


def data(shape=(BATCH, LENGTH, FEATURES), dtype="float32", seed=0):
    return arrays.data(*shape, dtype=dtype, seed=seed)


def make_layer(policy="float32", x=None, **options):
    layer = MultiHeadAttention(4, num_key_value_heads=2, value_dim=3, dtype=policy, **options)
    nn.initialize(layer, data() if x is None else x)
    return layer


def steps(layer, x, cache, *sizes):
    outputs, begin = [], 0
    for size in sizes or [1] * x.shape[1]:
        out, cache = layer(x[:, begin : begin + size], cache=cache)
        outputs.append(out)
        begin += size
    return jnp.concatenate(outputs, 1), cache


def scanned(layer, x, cache):
    def step(cache, token):
        out, cache = layer(token[:, None], cache=cache)
        return cache, out[:, 0]

    cache, outputs = jax.lax.scan(step, cache, jnp.moveaxis(x, 1, 0))
    return jnp.moveaxis(outputs, 0, 1), cache


def causal(layer, x, mask=None):
    """Return the outputs of one compiled pass over the whole sequence."""
    return jax.jit(lambda x: layer(x, is_causal=True, mask=mask))(x)


def assert_close(got, want):
    assert got.dtype == want.dtype
    np.testing.assert_allclose(*(np.asarray(a, "float64") for a in (got, want)), atol=8 * as_format(got.dtype).eps)


@pytest.mark.slow
@every_policy
@pytest.mark.parametrize("how", ["eager", "jitted", "scanned", "in pieces"])
def test_decoding_one_token_at_a_time_matches_the_causal_pass(policy, how):
    x, layer = data(), make_layer(policy)
    cache = layer.init_cache(BATCH, LENGTH + 2)
    if how == "scanned":
        got, cache = jax.jit(partial(scanned, layer))(x, cache)
    elif how == "jitted":
        traces = []

        @jax.jit
        def step(token, cache):
            traces.append(1)
            return layer(token, cache=cache)

        outputs = []
        for place in range(LENGTH):
            out, cache = step(x[:, place : place + 1], cache)
            outputs.append(out)
        got = jnp.concatenate(outputs, 1)
        assert traces == [1]
    else:
        got, cache = steps(layer, x, cache, *([4, 1, 1] if how == "in pieces" else []))
    assert_close(got, causal(layer, x))
    compute = layer.compute_dtype or np.dtype("float32")
    assert (cache.keys.dtype, cache.values.dtype, int(cache.length)) == (compute, compute, LENGTH)
    assert cache.keys.shape == (BATCH, LENGTH + 2, 2, 2)
    assert (cache.keys[:, LENGTH:] == 0).all()


class Outer(Layer):
    """An outer layer, which casts floating inputs and outputs."""

    def __init__(self, inner, **options):
        super().__init__(**options)
        self.inner = inner

    def call(self, x, cache=None):
        return self.inner(x, cache=cache)


@pytest.mark.slow
@pytest.mark.parametrize("stored", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(
    "policy", ["mixed_bfloat16", "float32", "infer", "variable=float32,compute=bfloat16,output=float32"]
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_cache_keeps_its_dtype_in_every_layer(stored, policy, wrapped):
    """Flax FLIP, default dtypes, "Autoregressive decoding cache"."""
    x, layer = data(), make_layer(policy)
    cache = layer.init_cache(BATCH, LENGTH, stored)
    run = Outer(layer, dtype=policy) if wrapped else layer
    if wrapped:
        nn.initialize(run, x, cache)
    for call in (run, jax.jit(run)):
        out, new = call(x, cache=cache)
        assert (new.keys.dtype, new.values.dtype) == (stored, stored)
        assert out.dtype == (layer.dtype_policy.output_dtype or "float32")
    whole = causal(layer, x)
    made_in = layer.compute_dtype or whole.dtype
    narrowest = max(as_format(dtype).eps for dtype in (stored, made_in))
    np.testing.assert_allclose(np.asarray(out, "float64"), np.asarray(whole, "float64"), atol=8 * narrowest)
    if made_in == whole.dtype and as_format(stored).holds(as_format(made_in)):  # the cache does not round
        assert_close(out, whole)


@pytest.mark.slow
def test_inferred_cache_has_the_result_type_of_inputs_and_weights():
    assert make_layer("infer").init_cache(1, 2).keys.dtype == "float32"
    assert make_layer("infer", data(dtype="float16"), param_dtype="float16").init_cache(1, 2).keys.dtype == "float16"
    with jax.enable_x64(True):
        x = data(dtype="float64")
        layer = make_layer("infer", x)
        cache = layer.init_cache(BATCH, LENGTH)
        assert cache.keys.dtype == "float64"
        assert_close(steps(layer, x, cache)[0], causal(layer, x))


class TestCapacity:
    @pytest.mark.slow
    def test_append_to_a_full_cache_raises_if_the_length_is_known(self):
        x, layer = data(), make_layer()
        _, cache = steps(layer, x, layer.init_cache(BATCH, LENGTH))
        with pytest.raises(
            ArgumentError, match="1 more positions make 7, but the cache has room for 6; make a cache with"
        ):
            layer(x[:, :1], cache=cache)
        with pytest.raises(ArgumentError, match="6 more positions make 6, but the cache has room for 4"):
            jax.jit(layer)(x, cache=layer.init_cache(BATCH, 4))

    @pytest.mark.slow
    @every_policy
    def test_traced_overfull_cache_gives_nan_from_then_on(self, policy):
        x, layer = data(), make_layer(policy)
        got, cache = jax.jit(partial(scanned, layer))(x, layer.init_cache(BATCH, 4))
        assert np.isfinite(np.asarray(got[:, :4], "float32")).all()
        assert np.isnan(np.asarray(got[:, 4:], "float32")).all()
        assert bool(cache.is_overfull)
        assert_close(got[:, :4], causal(layer, x[:, :4]))

    @pytest.mark.slow
    def test_sequences_may_have_different_lengths(self):
        x, layer = data(), make_layer()
        # The second sequence is two positions shorter; later positions replace its padding.
        _, cache = layer(x[:, :4], cache=layer.init_cache(BATCH, 6))
        cache = replace(cache, length=jnp.asarray([4, 2], "int32"))
        out, cache = layer(x[:, 4:5], cache=cache)
        want = layer(jnp.stack([x[0, :5], jnp.concatenate([x[1, :2], x[1, 4:5], x[1, :2]])]), is_causal=True)
        assert_close(out[0, 0], want[0, 4])
        assert_close(out[1, 0], want[1, 2])
        assert cache.length.tolist() == [5, 3]
        got = jax.jit(layer)(x[:, :2], cache=cache)[0]
        assert np.isnan(np.asarray(got)).all(axis=(1, 2)).tolist() == [True, False]
        with pytest.raises(ArgumentError, match="2 more positions make 7"):
            layer(x[:, :2], cache=cache)


@pytest.mark.slow
@pytest.mark.parametrize("floating", [False, True])
def test_padding_masks_work_while_decoding(floating):
    x, layer = data(), make_layer()
    valid = jnp.ones((BATCH, 1, 1, LENGTH), bool).at[1, 0, 0, :2].set(False)
    mask = additive(valid, "float32") if floating else valid
    got, cache = [], layer.init_cache(BATCH, LENGTH)
    for place in range(LENGTH):
        out, cache = layer(x[:, place : place + 1], cache=cache, mask=mask)
        got.append(out)
    want = causal(layer, x, valid)
    assert_close(jnp.concatenate(got, 1), want)
    assert_close(want[1, 2:], causal(layer, x[1:, 2:])[0])


def test_cache_is_a_pytree_with_three_leaves():
    cache = KeyValueCache.empty(2, 3, 4, 5, value_dim=6, dtype="float16")
    leaves, structure = jax.tree.flatten(replace(cache, length=cache.length + 1))
    assert [(leaf.shape, leaf.dtype) for leaf in leaves] == [
        ((2, 3, 4, 5), "float16"), ((2, 3, 4, 6), "float16"), ((), "int32"),
    ]  # fmt: skip
    assert int(jax.tree.unflatten(structure, leaves).length) == 1
