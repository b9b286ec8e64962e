"""Attention compared with Flax's, over every dtype of queries, of keys and values, and of the computation."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen

from conformance.flax_judge import CELLS, Cell, differences, gradients_everywhere, random_like
from slowly import for_each
from supremum import nn
from supremum.errors import OperandError
from supremum.nn.functional.attention import dot_product_attention
from supremum.nn.functional.masks import make_causal_mask
from supremum.nn.layers.attention import MultiHeadAttention

INPUTS = {"query": (1, 2, 2, 2)}
PARAMS = {"key": (1, 3, 2, 2), "value": (1, 3, 2, 3), "bias": (2, 1, 3)}
MASK = make_causal_mask(2, 3, offset=1)

DEPARTURES = {
    lambda cell: "complex64" in cell: (
        'Attention raises on complex inputs (Flax FLIP, default dtypes, "Corner cases"), because neither the product '
        "nor the softmax has a clear definition for them. Flax computes a result or drops the imaginary parts."
    ),
}
COMPLEX = [cell for cell in CELLS if "complex64" in cell]
REAL = [cell for cell in CELLS if not any(departs(cell) for departs in DEPARTURES)]

WITH_GRADIENTS = [
    Cell("float16", "float16", None),
    Cell("bfloat16", "float32", None),
    Cell("float32", "float32", "float16"),
    Cell("float64", "bfloat16", None),
    Cell("float16", "float64", "float16"),
]
"""Cells in which gradients are always compared, one per kind of promotion and cast."""


def ours(params, inputs, asked):
    rest = {name: array for name, array in params.items() if name != "bias"}
    return dot_product_attention(**inputs, **rest, bias=params.get("bias"), mask=MASK, dtype=asked)


def theirs(params, inputs, asked):
    rest = {name: array for name, array in params.items() if name != "bias"}
    return linen.dot_product_attention(**inputs, **rest, bias=params.get("bias"), mask=MASK, dtype=asked)


@pytest.mark.slow
@gradients_everywhere
def test_attention_outputs_and_gradients_agree_with_flax_for_real_dtypes(everywhere):
    with jax.enable_x64(True):
        # Flax rounds scores, probabilities and each step of its softmax to the compute dtype.
        for gradients in (True, False):
            cells = [cell for cell in REAL if (cell in WITH_GRADIENTS) == gradients]
            asked = gradients or everywhere
            chosen = cells if asked else cells[::3]
            assert list(differences(ours, theirs, INPUTS, PARAMS, cells=chosen, ulps=8, gradients=asked)) == []


@for_each("cell", COMPLEX, one_in=36, one_slow_in=12)
def test_attention_refuses_complex_numbers_where_flax_computes(cell):
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the imaginary parts that Flax drops
        args = random_like(PARAMS, cell.params), random_like(INPUTS, cell.inputs), cell.asked
        assert np.isfinite(theirs(*args)).all()
        with pytest.raises(OperandError, match="not defined for complex numbers"):
            ours(*args)


@pytest.mark.slow
def test_fully_masked_queries_get_zeros_where_flax_averages_all_values():
    """A departure from Flax: there is no value to average, and an average would make padding nonzero."""
    x, none = random_like((1, 2, 1, 2), "float32"), jnp.zeros((2, 2), bool)
    assert (dot_product_attention(x, x, x, mask=none) == 0).all()
    np.testing.assert_allclose(
        linen.dot_product_attention(x, x, x, mask=none)[0, 0], np.asarray(x).mean(1)[0], rtol=1e-6
    )


WEIGHTS = {
    "query": {"kernel": (4, 2, 3), "bias": (2, 3)},
    "key": {"kernel": (4, 2, 3), "bias": (2, 3)},
    "value": {"kernel": (4, 2, 3), "bias": (2, 3)},
    "out": {"kernel": (2, 3, 4), "bias": (4,)},
}
# A different dtype for each role, and inferred dtypes.
MIXED = Cell("float16", "float32", "bfloat16")
SOME = [MIXED, Cell("float64", "float32", None)]


def layer_of_ours(params, inputs, asked):
    dtype = params["out"]["bias"].dtype
    layer = MultiHeadAttention(2, 3, dtype=asked or "infer", param_dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the layer warns about float32 inputs of a float16 layer
        nn.output_spec(layer, inputs)
        flat = {f"{name}/{leaf}": value for name, part in params.items() for leaf, value in part.items()}
        renamed = {path.replace("out/", "output/"): value for path, value in flat.items()}
        return nn.functional_call(layer, renamed, inputs, is_causal=True)[0]


def layer_of_flax(params, inputs, asked):
    layer = linen.MultiHeadDotProductAttention(
        2, qkv_features=6, dtype=asked, param_dtype=params["out"]["bias"].dtype, deterministic=True
    )
    return layer.apply({"params": params}, inputs, mask=make_causal_mask(inputs.shape[1]))


@pytest.mark.slow
def test_attention_layer_agrees_with_flax_for_mixed_dtypes():
    with jax.enable_x64(True):
        found = list(differences(layer_of_ours, layer_of_flax, (1, 3, 4), WEIGHTS, cells=SOME, ulps=8))
    # A bias of keys adds the same number to all scores of a query, so its gradient is zero except for rounding.
    assert [line for line in found if "['key']['bias']" not in line] == []
    inputs, params = random_like((1, 3, 4), MIXED.inputs, 1), random_like(WEIGHTS, MIXED.params, 2)
    slopes = [
        jax.grad(lambda params, layer=layer: (layer(params, inputs, MIXED.asked) ** 2).astype("float32").sum())(params)
        for layer in (layer_of_ours, layer_of_flax)
    ]
    largest = [float(jnp.abs(slope["key"]["bias"]).max()) for slope in slopes]
    assert largest[0] < largest[1] / 4


@pytest.mark.slow
def test_attention_layer_refuses_complex_weights_where_flax_computes():
    with jax.enable_x64(True):
        inputs, params = random_like((1, 3, 4), "float32"), random_like(WEIGHTS, "complex64")
        assert np.isfinite(layer_of_flax(params, inputs, None)).all()
        with pytest.raises(OperandError, match="query must be real, got complex64"):
            layer_of_ours(params, inputs, None)


@pytest.mark.slow
def test_cached_decoding_agrees_with_flax():
    """Both sides decode token by token, with a cache in the dtype of the keys."""
    dtype = "bfloat16"
    inputs, params = random_like((2, 3, 4), dtype, 1), random_like(WEIGHTS, "float32", 2)
    flax = linen.MultiHeadDotProductAttention(2, qkv_features=6, dtype=dtype, decode=True, deterministic=True)
    cache = flax.init(jax.random.key(0), inputs)["cache"]
    layer = MultiHeadAttention(2, 3, dtype=f"variable=float32,compute={dtype}")
    nn.output_spec(layer, inputs)
    nn.load_variables(
        layer,
        {
            f"{name.replace('out', 'output')}/{leaf}": value
            for name, part in params.items()
            for leaf, value in part.items()
        },
    )
    own = layer.init_cache(2, 3)
    for place in range(3):
        token = inputs[:, place : place + 1]
        want, changed = flax.apply({"params": params, "cache": cache}, token, mutable=["cache"])
        cache = changed["cache"]
        got, own = layer(token, cache=own)
        assert got.dtype == want.dtype == dtype
        np.testing.assert_allclose(
            *(np.asarray(a, "float64") for a in (got, want)), atol=16 * float(jnp.finfo(dtype).eps)
        )
    assert own.keys.dtype == cache["cached_key"].dtype == dtype
