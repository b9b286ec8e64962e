"""The time of a training step compared with Flax nnx and with Keras 3 on JAX.

make bench
"""

import os
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optional_packages import import_or_skip
from supremum import nn
from supremum.mixed_precision import use_policy

keras = import_or_skip("keras")
nnx = import_or_skip("flax.nnx")

WIDTH, HEADS, LENGTH, BATCH = 256, 4, 64, 16
DTYPES = {"float32": "float32", "mixed_bfloat16": "bfloat16"}


class Block(nn.Layer):
    """A transformer block: attention and a perceptron, each with a norm before it and a residual connection."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.norms = [nn.LayerNorm(dtype=policy), nn.LayerNorm(dtype=policy)]
        self.attention = nn.MultiHeadAttention(HEADS, WIDTH // HEADS, dtype=policy)
        self.up, self.down = nn.Dense(4 * WIDTH, dtype=policy), nn.Dense(WIDTH, dtype=policy)

    def call(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.down(jax.nn.gelu(self.up(self.norms[1](x))))


def ours(kind, policy):
    with use_policy(policy):
        layers = (
            [nn.Dense(1024), nn.ReLU(), nn.Dense(1024), nn.ReLU(), nn.Dense(WIDTH)]
            if kind == "mlp"
            else [Block(), Block()]
        )
        model = nn.SequentialNetwork(layers)
    nn.initialize(model, example(kind))
    trainable, _ = nn.split_variables(model)
    return trainable, lambda values, x: nn.functional_call(model, values, x, training=True)[0]


def flax(kind, policy):
    dtype, rngs = DTYPES[policy], nnx.Rngs(0)

    class FlaxBlock(nnx.Module):
        def __init__(self):
            self.norms = nnx.List([nnx.LayerNorm(WIDTH, dtype=dtype, rngs=rngs) for _ in range(2)])
            self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, dtype=dtype, rngs=rngs)
            self.up, self.down = (
                nnx.Linear(*s, dtype=dtype, rngs=rngs) for s in ((WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
            )

        def __call__(self, x):
            x = x + self.attention(self.norms[0](x))
            return x + self.down(jax.nn.gelu(self.up(self.norms[1](x))))

    sizes = ((WIDTH, 1024), (1024, 1024), (1024, WIDTH))
    if kind == "mlp":
        linear = [nnx.Linear(*size, dtype=dtype, rngs=rngs) for size in sizes]
        model = nnx.Sequential(linear[0], nnx.relu, linear[1], nnx.relu, linear[2])
    else:
        model = nnx.Sequential(FlaxBlock(), FlaxBlock())
    graph, state = nnx.split(model)
    return state, lambda state, x: nnx.merge(graph, state)(x.astype(dtype))


def in_keras(kind, policy):
    keras.config.set_dtype_policy(policy)
    inputs = keras.Input((WIDTH,) if kind == "mlp" else (LENGTH, WIDTH))
    x = inputs
    if kind == "mlp":
        for units, activation in ((1024, "relu"), (1024, "relu"), (WIDTH, None)):
            x = keras.layers.Dense(units, activation=activation)(x)
    else:
        for _ in range(2):
            h = keras.layers.LayerNormalization(epsilon=1e-6)(x)
            x = x + keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS, flash_attention=False)(h, h)
            h = keras.layers.LayerNormalization(epsilon=1e-6)(x)
            x = x + keras.layers.Dense(WIDTH)(jax_gelu(keras.layers.Dense(4 * WIDTH)(h)))
    model = keras.Model(inputs, x)
    values = [variable.value for variable in model.trainable_variables]
    rest = [variable.value for variable in model.non_trainable_variables]
    return values, lambda values, x: model.stateless_call(values, rest, x, training=True)[0]


def jax_gelu(x):
    return keras.activations.gelu(x, approximate=True)


def example(kind):
    shape = (BATCH * LENGTH, WIDTH) if kind == "mlp" else (BATCH, LENGTH, WIDTH)
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), "float32")


def training_step(values, forward, x):
    """Return a compiled step of gradient descent."""

    def loss(values, x):
        return jnp.mean(jnp.square(forward(values, x).astype("float32")))

    def step(values, x):
        value, gradients = jax.value_and_grad(loss)(values, x)
        return jax.tree.map(lambda v, g: v - 1e-3 * g, values, gradients), value

    return jax.jit(step).lower(values, x).compile()


@pytest.mark.parametrize("policy", DTYPES)
@pytest.mark.parametrize("kind", ["mlp", "transformer"])
def test_a_step_compared_with_flax_and_keras(benchmark, figures, kind, policy):
    x = example(kind)
    built = {"ours": ours(kind, policy), "Flax nnx": flax(kind, policy), "Keras 3": in_keras(kind, policy)}
    steps = {name: (training_step(values, forward, x), values) for name, (values, forward) in built.items()}
    counts = {name: sum(leaf.size for leaf in jax.tree.leaves(values)) for name, (_, values) in steps.items()}
    assert len(set(counts.values())) == 1, counts
    taken = {name: [] for name in steps}

    def measure():
        for name, (step, values) in steps.items():
            start = time.perf_counter()
            jax.block_until_ready(step(values, x))
            taken[name].append(time.perf_counter() - start)

    benchmark.pedantic(measure, rounds=41, warmup_rounds=3)
    for name in ("Flax nnx", "Keras 3"):
        figures.compare(f"a training step of {kind}, {policy}", taken["ours"], taken[name], name)
