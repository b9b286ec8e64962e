"""The time of a step of `fit` compared with Keras 3 on JAX and with a loop written by hand.

make bench
"""

import os
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optional_packages import import_or_skip
from supremum import nn
from supremum.mixed_precision import use_policy
from supremum.optimizers import Adam
from supremum.training import Sequential, SparseCategoricalCrossentropy
from transformer import HEADS, LENGTH, WIDTH, Block

keras = import_or_skip("keras")

BATCH, CLASSES = 128, 10
POLICIES = ["float32", "mixed_float16"]
EXAMPLES = {"mlp": 320 * BATCH, "transformer": 32 * BATCH, "convolutional": 64 * BATCH}
SHAPES = {"mlp": (64,), "transformer": (LENGTH, WIDTH), "convolutional": (8, 8, 1)}


def our_layers(kind):
    if kind == "mlp":
        return [nn.Dense(256), nn.ReLU(), nn.Dense(256), nn.ReLU(), nn.Dense(CLASSES)]
    if kind == "transformer":
        return [*(Block() for _ in range(4)), nn.Flatten(), nn.Dense(CLASSES)]
    return [
        nn.Conv(16, (3, 3)), nn.BatchNorm(), nn.ReLU(), nn.MaxPool((2, 2)),
        nn.Conv(32, (3, 3)), nn.BatchNorm(), nn.ReLU(), nn.MaxPool((2, 2)), nn.Flatten(), nn.Dense(CLASSES),
    ]  # fmt: skip


def ours(kind, policy, **options):
    with use_policy(policy):
        model = Sequential(our_layers(kind))
    model.compile(
        Adam(1e-3),
        SparseCategoricalCrossentropy(from_logits=True),
        ["accuracy"],
        **options,
    )
    return model


def in_keras(kind, policy, **options):
    keras.config.set_dtype_policy(policy)
    layers = keras.layers
    x = inputs = keras.Input(SHAPES[kind])
    if kind == "mlp":
        for units in (256, 256):
            x = layers.Dense(units, activation="relu")(x)
    elif kind == "transformer":
        for _ in range(4):
            h = layers.LayerNormalization(epsilon=1e-6)(x)
            x = x + layers.MultiHeadAttention(HEADS, WIDTH // HEADS, flash_attention=False)(h, h)
            h = layers.LayerNormalization(epsilon=1e-6)(x)
            x = x + layers.Dense(WIDTH)(layers.Activation(approximate_gelu)(layers.Dense(4 * WIDTH)(h)))
        x = layers.Flatten()(x)
    else:
        for filters in (16, 32):
            x = layers.Conv2D(filters, 3, padding="same")(x)
            x = layers.MaxPooling2D()(layers.ReLU()(layers.BatchNormalization()(x)))
        x = layers.Flatten()(x)
    model = keras.Model(inputs, layers.Dense(CLASSES)(x))
    model.compile(
        keras.optimizers.Adam(1e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        **options,
    )
    return model


def approximate_gelu(x):
    return keras.activations.gelu(x, approximate=True)


def fitted(model, x, y):
    def run():
        model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)

    return run


def by_hand(kind, policy, x, y):
    """Return a training loop written by hand.

    It shuffles batches, sums the loss and accuracy of the epoch, and has a dynamic loss scale in float16.
    """
    with use_policy(policy):
        model = nn.SequentialNetwork(our_layers(kind))
    nn.initialize(model, x[:1])
    trainable, other = nn.split_variables(model)
    optimizer = optax.adam(1e-3)
    is_scaled = policy == "mixed_float16"

    def loss_of(trainable, other, x, y, scale):
        outputs, values = nn.functional_call(model, trainable | other, x, training=True)
        loss = optax.softmax_cross_entropy_with_integer_labels(outputs.astype("float32"), y).mean()
        right = (outputs.argmax(-1) == y).sum()
        return loss * scale, ({path: values[path] for path in other}, loss, right)

    def step(state, x, y):
        trainable, other, moments, scale, good, total, right = state
        gradients, (after, loss, hits) = jax.grad(loss_of, has_aux=True)(trainable, other, x, y, scale)

        def update():
            unscaled = jax.tree.map(lambda gradient: gradient / scale, gradients) if is_scaled else gradients
            updates, after_moments = optimizer.update(unscaled, moments, trainable)
            return optax.apply_updates(trainable, updates), after, after_moments

        if not is_scaled:
            return *update(), scale, good, total + loss, right + hits
        finite = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients)]).all()
        changed = jax.lax.cond(finite, update, lambda: (trainable, other, moments))
        is_due = good >= 1999
        scale = jnp.where(finite, jnp.where(is_due, scale * 2, scale), jnp.maximum(scale / 2, 1))
        good = jnp.where(finite & ~is_due, good + 1, 0)
        return *changed, scale, good, total + jnp.where(finite, loss, 0), right + jnp.where(finite, hits, 0)

    step = jax.jit(step, donate_argnums=0)
    numbers = jnp.float32(2.0**15 if is_scaled else 1), jnp.int32(0), jnp.float32(0), jnp.int32(0)
    state = [jax.tree.map(jnp.copy, (trainable, other, optimizer.init(trainable), *numbers))]
    random = np.random.default_rng(0)

    def run():
        order = random.permutation(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            state[0] = step(state[0], x[rows], y[rows])
        *_, total, right = state[0]
        return float(total), int(right)

    return run


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_step_compared_with_keras_and_a_loop_by_hand(benchmark, figures, kind, policy):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(EXAMPLES[kind], *SHAPES[kind])).astype("float32")
    y = rng.integers(0, CLASSES, len(x)).astype("int32")
    steps = len(x) // BATCH
    runs = {
        "ours": fitted(ours(kind, policy), x, y),
        "ours, 4 at once": fitted(ours(kind, policy, steps_per_execution=4), x, y),
        "by hand": by_hand(kind, policy, x, y),
        "by hand again": by_hand(kind, policy, x, y),
    }
    # Keras calls JAX's attention, which does not support float16 on CPU.
    if (kind, policy) != ("transformer", "mixed_float16"):
        runs["Keras"] = fitted(in_keras(kind, policy), x, y)
        runs["Keras, 4 at once"] = fitted(in_keras(kind, policy, steps_per_execution=4), x, y)
    if kind == "convolutional":  # several steps at once are a loop, and XLA's convolutions in loops are slow on CPU
        del runs["ours, 4 at once"], runs["Keras, 4 at once"]
    taken = {name: [] for name in runs}

    def measure():
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            taken[name].append((time.perf_counter() - start) / steps)

    benchmark.pedantic(measure, rounds=7 if kind == "transformer" else 15, warmup_rounds=2)
    pairs = [("ours", "by hand"), ("ours", "Keras")]
    pairs += [("ours, 4 at once", "Keras, 4 at once"), ("by hand again", "by hand")]
    for mine, peer in pairs:
        if mine in taken and peer in taken:
            how = mine.removeprefix("ours").removeprefix(", ")
            what = f"a step of {kind}, {policy}" + (f", {how}" if how else "")
            figures.compare(what, taken[mine][2:], taken[peer][2:], peer)
