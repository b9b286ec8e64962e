from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn.arrays import built
from nn.attention_reference import additive, exact, normal, seed_rng  # noqa: F401 (a fixture)
from supremum import nn
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.nn.functional.masks import make_causal_mask
from supremum.nn.layers.attention import MultiHeadAttention

either_mode = pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])


def make_layer(*inputs, seed=1, **options):
    return built(MultiHeadAttention(4, **options), *inputs, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16", "bfloat16", "infer"])
@either_mode
def test_layer_matches_the_formula_in_its_policy(policy, jitted):
    x, memory = normal(2, 5, 8), normal(2, 7, 6)
    options = {"num_key_value_heads": 2, "head_dim": 3, "value_dim": 5, "output_dim": 9}
    layer = make_layer(x, memory, dtype=policy, bias_initializer=jax.nn.initializers.normal(), **options)
    weights = {path: np.asarray(v.read_stored(), np.float64) for path, v in layer.variables.items()}
    assert {path: value.shape for path, value in weights.items()} == {
        "query/kernel": (8, 4, 3), "query/bias": (4, 3), "key/kernel": (6, 2, 3), "key/bias": (2, 3),
        "value/kernel": (6, 2, 5), "value/bias": (2, 5), "output/kernel": (4, 5, 9), "output/bias": (9,),
    }  # fmt: skip
    assert {v.true_dtype for v in layer.variables.values()} == {layer.variable_dtype}
    call = jax.jit(layer) if jitted else layer
    got = call(x, memory)
    assert got.dtype == (layer.compute_dtype or "float32")
    heads = [
        np.einsum("bnf,fhd->bnhd", np.asarray(given, np.float64), weights[f"{name}/kernel"]) + weights[f"{name}/bias"]
        for name, given in (("query", x), ("key", memory), ("value", memory))
    ]
    attended = exact(*heads, np.zeros((2, 5, 4, 5)))[0]
    want = np.einsum("bqhd,hdf->bqf", attended, weights["output/kernel"]) + weights["output/bias"]
    np.testing.assert_allclose(np.asarray(got, np.float64), want, atol=8 * as_format(got.dtype).eps)


def test_projections_get_policy_and_param_dtype():
    layer = make_layer(normal(1, 3, 8), dtype="mixed_float16", param_dtype="bfloat16", use_bias=False)
    assert {v.true_dtype for v in layer.variables.values()} == {np.dtype("bfloat16")}
    assert [(name, part.dtype_policy) for name, part in layer.sublayers()] == [
        (name, layer.dtype_policy) for name in ("query", "key", "value", "output")
    ]
    assert set(layer.variables) == {"query/kernel", "key/kernel", "value/kernel", "output/kernel"}


@pytest.mark.slow
def test_kernels_are_initialized_as_matrices():
    layer = make_layer(normal(1, 2, 512))
    assert float(layer.query.kernel.value.std()) == pytest.approx(512**-0.5, rel=0.02)
    assert float(layer.output.kernel.value.std()) == pytest.approx(512**-0.5, rel=0.02)


@pytest.mark.slow
def test_boolean_and_float32_masks_agree_in_float16():
    x = normal(2, 5, 8)
    layer = make_layer(x, dtype="mixed_float16")
    mask = make_causal_mask(5)
    want = layer(x, x, x, mask=mask)
    for kwargs in ({"is_causal": True}, {"mask": mask}, {"mask": additive(mask, "float32")}):
        np.testing.assert_array_equal(layer(x, **kwargs), want)
    # Float16 has no numbers between 1 and 1 + 2**-10, so a cast mask would be all ones.
    slight = jnp.where(mask, 1 + 2.0**-12, 1.0)
    ones = jnp.ones((5, 5))
    wide = make_layer(x, dtype="variable=float32,compute=float16,output=float32")
    assert not np.array_equal(wide(x, mask=slight * 1024), wide(x, mask=ones * 1024))


@pytest.mark.slow
def test_dropout_applies_only_in_training():
    x = normal(2, 5, 8)
    layer = make_layer(x, dropout_rate=0.5)
    variables = dict(zip(layer.variables, (v.value for v in layer.variables.values()), strict=True))
    call = partial(nn.functional_call, layer, variables, x)
    outside = call()[0]
    seeds = [call(training=True, random_key=jax.random.key(seed))[0] for seed in (0, 0, 1)]
    np.testing.assert_array_equal(seeds[0], seeds[1])
    assert not np.array_equal(seeds[0], seeds[2])
    assert not np.array_equal(seeds[0], outside)
    np.testing.assert_array_equal(outside, layer(x))
    with pytest.raises(ArgumentError, match="random_key"):
        layer(x, training=True)


@pytest.mark.slow
def test_empty_batch_has_gradients_in_the_stored_dtype():
    x = normal(0, 5, 8)
    layer = make_layer(normal(1, 5, 8), dtype="mixed_float16")
    assert layer(x).shape == (0, 5, 8)
    trainable, _ = nn.split_variables(layer)
    slopes = jax.grad(lambda v: nn.functional_call(layer, v, normal(2, 5, 8))[0].astype("float32").sum())(trainable)
    assert {leaf.dtype for leaf in slopes.values()} == {np.dtype("float32")}
