"""Compiled layers have the same products, convolutions and casts as the network written by hand in JAX."""

import re
from collections import Counter

import jax
import jax.numpy as jnp
import pytest

from supremum import nn
from supremum.mixed_precision import Policy, use_policy

POLICIES = ["float32", "mixed_bfloat16", "mixed_float16"]
COUNTED = ("dot", "convolution", "convert")


def _without_ones(shape):
    """Sort a shape without its axes of length 1, such as the axis of query heads for each head of keys."""
    sizes, dtype = re.findall(r"\d+(?=[x,\]])", shape), re.search(r"b?f\d+|i\d+|s\d+", shape)
    return (dtype and dtype[0], *sorted(size for size in sizes if size != "1"))


def operations(function, *args):
    """Count products, convolutions and casts of the optimized program, by dtypes and shapes."""
    text = jax.jit(function).lower(*args).compile().as_text()
    found = re.findall(r"= (\w+\[[\d,]*\])\S* (\w+)\(", text)
    return Counter((name, _without_ones(result)) for result, name in found if name in COUNTED)


def lowered(function, *args):
    """Count products, convolutions and casts of the traced program, before any fusion or elimination."""
    text = jax.jit(function).lower(*args).as_text()
    named = {"dot_general": "dot"}
    found = re.findall(r"stablehlo\.(\w+)\b[^\n]*: \(([^)]*)\) -> (\S+)", text)
    return Counter(
        (named.get(name, name), *map(_without_ones, (*kinds.split(", "), result)))
        for name, kinds, result in found
        if named.get(name, name) in COUNTED
    )


def model_and_values(build, x, policy):
    with use_policy(policy):
        model = build()
    nn.initialize(model, x)
    trainable, other = nn.split_variables(model)
    return model, trainable, other


def mlp():
    return nn.SequentialNetwork([nn.Dense(32), nn.ReLU(), nn.Dense(32), nn.ReLU(), nn.Dense(4)])


def mlp_by_hand(dtype):
    def run(values, x):
        x = x.astype(dtype)
        for number, name in enumerate(("dense", "dense_1", "dense_2")):
            x = x @ values[f"{name}/kernel"].astype(dtype) + values[f"{name}/bias"].astype(dtype)
            x = x if number == 2 else jax.nn.relu(x)
        return x

    return run


def convolutional():
    return nn.SequentialNetwork(
        [nn.Conv(4, (3, 3)), nn.BatchNorm(), nn.ReLU(), nn.MaxPool((2, 2)), nn.Flatten(), nn.Dense(3)]
    )


def convolutional_by_hand(dtype):
    def run(values, x):
        x = x.astype(dtype)
        layout = ("NHWC", "HWIO", "NHWC")
        kernel = values["conv/kernel"].astype(dtype)
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout)
        x = x + values["conv/bias"].astype(dtype)
        factor = jax.lax.rsqrt(values["batch_norm/moving_variance"] + 1e-3) * values["batch_norm/gamma"]
        x = (x.astype("float32") - values["batch_norm/moving_mean"]) * factor + values["batch_norm/beta"]
        x = jax.nn.relu(x.astype(dtype))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return x.reshape(x.shape[0], -1) @ values["dense/kernel"].astype(dtype) + values["dense/bias"].astype(dtype)

    return run


class Block(nn.Layer):
    """A transformer block."""

    def __init__(self):
        super().__init__()
        self.norms = [nn.LayerNorm(), nn.LayerNorm()]
        self.attention = nn.MultiHeadAttention(2)
        self.up, self.down = nn.Dense(32), nn.Dense(8)

    def call(self, x):
        x = x + self.attention(self.norms[0](x), is_causal=True)
        return x + self.down(jax.nn.relu(self.up(self.norms[1](x))))


def block_by_hand(dtype):
    """Compute statistics, scores, softmax and its product with values in float32, and the rest in one dtype."""

    def norm(x, values, name):
        wide = x.astype("float32")
        # As in `functional.moments`, the variance is corrected for the rounding of the mean.
        estimate = wide.mean(-1, keepdims=True)
        distance = wide - estimate
        error = distance.mean(-1, keepdims=True)
        variance = jnp.maximum(jnp.square(distance).mean(-1, keepdims=True) - jnp.square(error), 0)
        normal = (wide - (estimate + error)) * jax.lax.rsqrt(variance + 1e-6)
        return (normal * values[f"{name}/gamma"] + values[f"{name}/beta"]).astype(dtype)

    def product(x, values, name, axes=1):
        kernel, bias = (values[f"{name}/{part}"].astype(dtype) for part in ("kernel", "bias"))
        return jnp.tensordot(x, kernel, axes) + bias

    def attention(x, values):
        query, key, value = (product(x, values, f"attention/{name}") for name in ("query", "key", "value"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key, preferred_element_type="float32") / 2
        scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), scores, -jnp.inf)
        weights = jnp.exp(scores - scores.max(-1, keepdims=True))
        summed = jnp.einsum("bhqk,bkhd->bhqd", weights, value.astype("float32")) / weights.sum(-1, keepdims=True)
        return product(jnp.moveaxis(summed, 1, 2).astype(dtype), values, "attention/output", 2)

    def run(values, x):
        x = x.astype(dtype)
        x = x + attention(norm(x, values, "norms/0"), values)
        return x + product(jax.nn.relu(product(norm(x, values, "norms/1"), values, "up")), values, "down")

    return run


NETWORKS = {
    "mlp": (mlp, mlp_by_hand, (8, 16)),
    "convolutional": (convolutional, convolutional_by_hand, (2, 8, 8, 3)),
    "transformer block": (Block, block_by_hand, (2, 5, 8)),
}


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("count", [lowered, operations], ids=["traced", "optimised"])
@pytest.mark.parametrize(
    ("name", "backward"),
    [(name, False) for name in NETWORKS]
    # The derivatives of our attention do not go through the maximum of the scores, and those by hand do.
    + [(name, True) for name in NETWORKS if name != "transformer block"],
)
def test_models_compile_to_the_operations_of_handwritten_jax(name, policy, count, backward):
    build, by_hand, shape = NETWORKS[name]
    x = jnp.ones(shape)
    model, trainable, other = model_and_values(build, x, policy)
    written = by_hand(Policy(policy).compute_dtype)

    def ours(values, x):
        return nn.functional_call(model, values | other, x)[0]

    def theirs(values, x):
        return written(values | other, x)

    programs = (ours, theirs)
    if backward:
        programs = [jax.grad(lambda v, x, f=f: f(v, x).astype("float32").sum()) for f in programs]
    found, wanted = (count(program, trainable, x) for program in programs)
    assert wanted
    assert found == wanted


def test_operation_count_includes_repeated_casts():
    x = jnp.ones((2, 3), "bfloat16")
    once = lowered(lambda x: x.astype("float32") @ x.astype("float32").T, x)
    assert once != lowered(lambda x: x @ x.T, x)
    assert sum(once.values()) == 3
