"""Compiled, layers are gone: the products, convolutions and converts are those of the same network written by hand."""

import re
from collections import Counter

import jax
import jax.numpy as jnp
import pytest

from supremum import nn
from supremum.mixed_precision import Policy, use_policy

POLICIES = ["float32", "mixed_bfloat16", "mixed_float16"]
COUNTED = ("dot", "convolution", "convert")


def operations(function, *args):
    """How often the optimised program has each product, convolution and convert, by its dtypes and shapes."""
    text = jax.jit(function).lower(*args).compile().as_text()
    found = re.findall(r"= (\w+\[[\d,]*\])\S* (\w+)\((?:(\w+\[[\d,]*\])\S* )?", text)
    return Counter((name, result, operand) for result, name, operand in found if name in COUNTED)


def lowered(function, *args):
    """The same of the program as it is traced, where nothing has been fused or left out."""
    text = jax.jit(function).lower(*args).as_text()
    named = {"dot_general": "dot"}
    found = re.findall(r"stablehlo\.(\w+)\b[^\n]*: \(([^)]*)\) -> (\S+)", text)
    counted = Counter((named.get(name, name), kinds, result) for name, kinds, result in found)
    return Counter({key: n for key, n in counted.items() if key[0] in COUNTED})


def model_and_values(build, x, policy):
    with use_policy(policy):
        model = build()
    nn.initialize(model, x)
    trainable, other = nn.split_variables(model)
    return model, trainable, other


def mlp():
    return nn.Sequential([nn.Dense(32), nn.ReLU(), nn.Dense(32), nn.ReLU(), nn.Dense(4)])


def mlp_by_hand(dtype):
    def run(values, x):
        x = x.astype(dtype)
        for number, name in enumerate(("dense", "dense_1", "dense_2")):
            x = x @ values[f"{name}/kernel"].astype(dtype) + values[f"{name}/bias"].astype(dtype)
            x = x if number == 2 else jax.nn.relu(x)
        return x

    return run


def convolutional():
    return nn.Sequential([nn.Conv(4, (3, 3)), nn.BatchNorm(), nn.ReLU(), nn.MaxPool((2, 2)), nn.Flatten(), nn.Dense(3)])


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


NETWORKS = {
    "mlp": (mlp, mlp_by_hand, (8, 16)),
    "convolutional": (convolutional, convolutional_by_hand, (2, 8, 8, 3)),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("count", [lowered, operations], ids=["traced", "optimised"])
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "gradient"])
def test_the_same_products_convolutions_and_converts(name, policy, count, backward):
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


def test_the_count_sees_a_cast_that_is_there_twice():
    x = jnp.ones((2, 3), "bfloat16")
    once = lowered(lambda x: x.astype("float32") @ x.astype("float32").T, x)
    assert once != lowered(lambda x: x @ x.T, x)
    assert sum(once.values()) == 3
