"""Autocast of models in Equinox, Flax linen, Flax nnx and plain JAX that were not written for it.

Each model is a function of one tree of float32 arrays, its parameters and inputs, so the tests check all gradients.
"""

import re
from functools import cache, cached_property
from types import ModuleType

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.extend.core import check_jaxpr

from supremum.formats import as_format
from supremum.mixed_precision import autocast

BATCH, LENGTH, WIDTH, HEADS = 4, 5, 16, 2
KEY = jax.random.key(0)
COMPUTE = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}
STABLEHLO_NAMES = {"bfloat16": "bf16", "float16": "f16"}

# TOLERANCE is the largest error of a leaf in L2 norm, as a multiple of the format's eps and of the leaf's norm. For a
# gradient, this norm is at least SHARE of the largest one, since the gradient of a bias of attention keys is zero.
# The largest error over many inputs is 2.8, except where rounding crosses a jump, such as the one of relu at 0.
TOLERANCE, SHARE = 4, 0.05


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def filled(shapes):
    """Fill abstract arrays with random numbers, which is faster than initialising the model."""
    seeds = iter(range(1000))
    return jax.tree.map(
        lambda leaf: (
            jnp.asarray(normal(*leaf.shape, seed=next(seeds)) / 4) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf
        ),
        shapes,
    )


# JAX alone

# The argument of each is a product, which has the compute dtype.
NAMES = """
celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid log_softmax logmeanexp
logsumexp mish relu relu6 selu sigmoid silu soft_sign softmax softplus sparse_plus sparse_sigmoid squareplus standardize
swish tanh
"""
FUNCTIONS = {name: getattr(jax.nn, name) for name in NAMES.split()} | {
    "dot_product_attention": lambda x: jax.nn.dot_product_attention(*[x.reshape(2, 2, 1, -1)] * 3),
    "log1mexp": lambda x: jax.nn.log1mexp(x * x + 0.5),
    "scaled_dot_general": lambda x: jax.nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ()))),
}
OTHERS = {
    "get_scaled_dot_general_config": "makes settings",
    "one_hot": "takes integers",
    "scaled_matmul": "takes what is quantised, and has no derivative",
}


def jax_nn():
    def run(tree):
        weights, x = tree
        return {name: function(x @ weights[name]) for name, function in FUNCTIONS.items()}

    weights = {name: normal(WIDTH, WIDTH, seed=100 + i) / 4 for i, name in enumerate(FUNCTIONS)}
    return run, (weights, normal(BATCH, WIDTH))


def transformer_block():
    widths = {"query": WIDTH, "key": WIDTH, "value": WIDTH, "out": WIDTH, "up": 2 * WIDTH}
    params = {name: normal(WIDTH, width, seed=i) / 4 for i, (name, width) in enumerate(widths.items())}
    params |= {"down": params["up"].T, "scale": np.ones(WIDTH, np.float32)}

    def run(tree):
        params, x = tree

        def norm(x):
            return params["scale"] * x * jax.lax.rsqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-6)

        q, k, v = ((norm(x) @ params[name]).reshape(BATCH, LENGTH, HEADS, -1) for name in ("query", "key", "value"))
        x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ params["out"]
        return x + jax.nn.silu(norm(x) @ params["up"]) @ params["down"]

    return run, (params, normal(BATCH, LENGTH, WIDTH))


# Flax


class Convolutions(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(8, (3, 3), strides=2)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=False)(x))
        x = nn.Conv(8, (3, 3), feature_group_count=8)(x)
        x = nn.Dropout(0.3, deterministic=False)(nn.swish(x))
        return nn.softmax(nn.Dense(WIDTH)(x.mean((1, 2))))


def linen_convolutions():
    # The squares of the first layer's outputs overflow float16.
    model, x, keys = Convolutions(), 100 * normal(BATCH, 8, 8, 3), {"params": KEY, "dropout": KEY}

    def run(tree):
        out, statistics = model.apply(*tree, rngs=keys, mutable=["batch_stats"])
        return out, jax.lax.stop_gradient(statistics)

    return run, (filled(jax.eval_shape(model.init, keys, x)), x)


def linen_rnn():
    model, x = nn.RNN(nn.LSTMCell(WIDTH), return_carry=True), normal(BATCH, LENGTH, WIDTH)
    return lambda tree: model.apply(*tree), (filled(jax.eval_shape(model.init, KEY, x)), x)


def linen_attention():
    model, x = nn.MultiHeadDotProductAttention(HEADS), normal(BATCH, LENGTH, WIDTH)
    mask = nn.make_causal_mask(x[..., 0])
    return lambda tree: model.apply(*tree, mask=mask), (filled(jax.eval_shape(model.init, KEY, x)), x)


class VitBlock(nnx.Module):
    def __init__(self, rngs):
        self.norms = nnx.List([nnx.LayerNorm(WIDTH, rngs=rngs) for _ in range(2)])
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=rngs)
        self.up, self.down = nnx.Linear(WIDTH, 2 * WIDTH, rngs=rngs), nnx.Linear(2 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.down(nnx.gelu(self.up(self.norms[1](x))))


def nnx_vit_block():
    definition, state = nnx.split(nnx.eval_shape(lambda: VitBlock(nnx.Rngs(0))))
    return lambda tree: nnx.merge(definition, tree[0])(tree[1]), (filled(state), normal(BATCH, LENGTH, WIDTH))


# Equinox


def mapped_over_batch(model, x):
    """Map an Equinox model, which takes one example, over a batch."""
    params, static = eqx.partition(model, eqx.is_array)
    return lambda tree: jax.vmap(eqx.combine(tree[0], static))(tree[1]), (params, x)


def equinox_convolutions():
    layers = eqx.filter_eval_shape(
        lambda key: [
            eqx.nn.Conv2d(3, 8, 3, padding=1, key=key),
            eqx.nn.LayerNorm((8, 8, 8)),
            eqx.nn.MaxPool2d(2, 2),
            eqx.nn.ConvTranspose2d(8, 4, 2, key=key),
            eqx.nn.AvgPool2d(5, 5),
            eqx.nn.Linear(4, WIDTH, key=key),
        ],
        KEY,
    )
    conv, norm, pool, up, mean, linear = filled(layers)
    functions = map(eqx.nn.Lambda, (jax.nn.gelu, jax.nn.silu, jnp.ravel, jax.nn.log_softmax))
    gelu, silu, ravel, log_softmax = functions
    model = eqx.nn.Sequential([conv, norm, gelu, pool, up, silu, mean, ravel, linear, log_softmax])
    return mapped_over_batch(model, normal(BATCH, 3, 8, 8, seed=6))


def equinox_attention():
    attention = filled(eqx.filter_eval_shape(eqx.nn.MultiheadAttention, HEADS, WIDTH, use_key_bias=True, key=KEY))
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    params, static = eqx.partition(attention, eqx.is_array)

    def run(tree):
        model = eqx.combine(tree[0], static)
        return jax.vmap(lambda x: model(x, x, x, mask=mask))(tree[1])

    return run, (params, normal(BATCH, LENGTH, WIDTH))


def equinox_lstm():
    def run(tree):
        cell, inputs = tree

        def step(state, x):
            state = jax.vmap(cell)(x, state)
            return state, state[0]

        return jax.lax.scan(step, (jnp.zeros((BATCH, WIDTH)),) * 2, inputs)

    cell = filled(eqx.filter_eval_shape(eqx.nn.LSTMCell, WIDTH, WIDTH, key=KEY))
    return run, (cell, normal(LENGTH, BATCH, WIDTH))


def equinox_gru():
    def run(tree):
        cell, inputs = tree
        state = jnp.zeros((BATCH, WIDTH))
        for x in inputs:
            state = jax.checkpoint(jax.vmap(cell))(x, state)
        return state

    cell = filled(eqx.filter_eval_shape(eqx.nn.GRUCell, WIDTH, WIDTH, key=KEY))
    return run, (cell, normal(3, BATCH, WIDTH))


def mlp():
    return filled(eqx.filter_eval_shape(eqx.nn.MLP, WIDTH, WIDTH, WIDTH, depth=2, activation=jax.nn.gelu, key=KEY))


def equinox_mlp():
    return mapped_over_batch(mlp(), normal(BATCH, WIDTH))


MODELS = [
    jax_nn, transformer_block, linen_convolutions, linen_rnn, linen_attention, nnx_vit_block, equinox_convolutions,
    equinox_attention, equinox_lstm, equinox_gru, equinox_mlp,
]  # fmt: skip


def loss_of(function):
    """Return a scaled loss of all outputs of a function, with the outputs as auxiliary data."""

    def loss(*args):
        out = function(*args)
        terms = [(leaf * normal(*leaf.shape, seed=i)).sum() for i, leaf in enumerate(jax.tree.leaves(out))]
        return 64 * sum(terms), out

    return loss


@cache
def in_float32(model):
    function, tree = model()
    return jax.jit(jax.grad(loss_of(function), has_aux=True))(tree)


# Gradients and outputs, with autocast and grad in either order.
ORDERS = {
    "grad of autocast": lambda loss, policy: jax.grad(autocast(loss, policy), has_aux=True),
    "autocast of grad": lambda loss, policy: autocast(jax.grad(loss, has_aux=True), policy),
}
# Both orders are traced under every policy, but each runs under only one, since compiling is slow.
RUN = {"mixed_bfloat16": "grad of autocast", "mixed_float16": "autocast of grad"}


class Case:
    """A model under a policy, with its outputs and gradients, traced in both orders and computed in one."""

    def __init__(self, model, policy):
        _, tree = model()
        self.model, self.policy, self.tree = model, policy, tree
        self.dtype = COMPUTE[policy]
        loss = loss_of(model()[0])
        self.traced = {name: jax.jit(order(loss, policy)).trace(tree) for name, order in ORDERS.items()}
        self.lowered = {name: traced.lower() for name, traced in self.traced.items()}

    @cached_property
    def want(self):
        return in_float32(self.model)

    @cached_property
    def got(self):
        return self.lowered[RUN[self.policy]].compile()(self.tree)


# One worker runs all tests of a model, so the model is compiled once.
CASES = [pytest.param((model, policy), id=f"{model.__name__}-{policy}") for model in MODELS for policy in COMPUTE]


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return cached_case(*request.param)


cached_case = cache(Case)


def errors(got, want, dtype, share=0.0):
    """Return the relative error of each leaf in multiples of eps, by path."""
    pairs = [(path, *map(np.float64, pair)) for path, pair in leaves_of(got, want)]
    largest = max((np.linalg.norm(right) for _, _, right in pairs), default=0.0)
    return {
        path: np.linalg.norm(left - right) / max(np.linalg.norm(right), share * largest) / as_format(dtype).eps
        for path, left, right in pairs
    }


def leaves_of(*trees):
    flat = [jax.tree_util.tree_leaves_with_path(tree) for tree in trees]
    assert flat[0]
    return [(jax.tree_util.keystr(pairs[0][0]), [leaf for _, leaf in pairs]) for pairs in zip(*flat, strict=True)]


def test_every_function_of_jax_nn_is_tested_or_listed_with_a_reason():
    public = {name for name, value in vars(jax.nn).items() if name[0] != "_" and not isinstance(value, ModuleType)}
    assert public == {*FUNCTIONS, *OTHERS}


@pytest.mark.one_in(8)
def test_every_product_has_the_compute_dtype(case):
    text = "\n".join(lowered.as_text() for lowered in case.lowered.values())
    products = re.findall(r"stablehlo\.(?:dot_general|convolution)\b.* : \((.*)\) -> (.*)", text)
    assert products
    for operands, result in products:
        assert set(re.findall(r"[<x]([a-z]+\d+)>", operands + result)) == {STABLEHLO_NAMES[case.dtype]}, (
            operands,
            result,
        )


@pytest.mark.one_in(36)
def test_outputs_and_gradients_are_close_to_float32(case):
    assert jax.tree.structure(case.got) == jax.tree.structure(case.want)
    for path, (got, want) in leaves_of(case.got, case.want):
        assert (got.shape, got.dtype) == (want.shape, "float32"), path
    (got_grads, got_out), (grads, out) = case.got, case.want
    found = errors(got_out, out, case.dtype) | errors(got_grads, grads, case.dtype, SHARE)
    assert {path: error for path, error in found.items() if not error < TOLERANCE} == {}


@pytest.mark.slow
def test_check_jaxpr_accepts_rewritten_programs(case):
    """JAX keeps a jitted function as rewritten, but traces other functions again."""
    loss = jax.jit(loss_of(case.model()[0]))
    for name, order in ORDERS.items():
        check_jaxpr(case.traced[name].jaxpr.jaxpr)
        check_jaxpr(jax.make_jaxpr(order(loss, case.policy))(case.tree).jaxpr)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda f: f, eqx.filter_jit], ids=["eager", "jitted"])
@pytest.mark.parametrize("policy", COMPUTE)
def test_equinox_models_can_be_arguments(policy, wrap):
    """Some leaves of an Equinox model are functions."""

    def run(model, x):
        return jax.vmap(model)(x)

    model, x = mlp(), normal(BATCH, WIDTH)
    out, (want_grads, want) = wrap(autocast(run, policy))(model, x), in_float32(equinox_mlp)
    grads, _ = wrap(eqx.filter_grad(autocast(loss_of(run), policy), has_aux=True))(model, x)
    assert (out.dtype, *{leaf.dtype for leaf in jax.tree.leaves(grads)}) == ("float32", "float32")
    found = errors((out, grads), (want, want_grads[0]), COMPUTE[policy], SHARE)
    assert max(found.values()) < TOLERANCE
    assert min(found.values()) > 0.01
