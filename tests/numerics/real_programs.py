"""Programs of other libraries that several tests of numerics run: each makes a function and its arguments."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from optional_packages import import_or_skip

STEPS = 5
"""The steps of the recurrences."""
KEY = jax.random.key(0)


def equinox_mlp():
    """The loss of a perceptron of Equinox."""
    eqx = pytest.importorskip("equinox")
    arrays, static = eqx.partition(eqx.nn.MLP(4, 3, 8, 2, key=KEY), eqx.is_array)

    def loss(arrays, x):
        return jnp.mean(jax.vmap(eqx.combine(arrays, static))(x) ** 2)

    return loss, (arrays, jax.random.normal(KEY, (5, 4)))


def equinox_gru():
    """The loss of a recurrent cell of Equinox."""
    eqx = pytest.importorskip("equinox")
    arrays, static = eqx.partition(eqx.nn.GRUCell(3, 4, key=KEY), eqx.is_array)

    def loss(arrays, inputs):
        cell = eqx.combine(arrays, static)
        return jnp.sum(lax.scan(lambda state, x: (cell(x, state), None), jnp.zeros(4), inputs)[0] ** 2)

    return loss, (arrays, jax.random.normal(KEY, (STEPS, 3)))


def linen_residual():
    """The loss of a residual block of Linen with dropout, and the new statistics of its normalization."""
    linen = import_or_skip("flax.linen")

    class Residual(linen.Module):
        @linen.compact
        def __call__(self, x):
            y = linen.relu(linen.BatchNorm(use_running_average=False)(linen.Conv(4, (3, 3))(x)))
            return linen.relu(x + linen.Dropout(0.3, deterministic=False)(linen.Conv(4, (3, 3))(y)))

    model, x = Residual(), jax.random.normal(KEY, (2, 4, 4, 4))
    variables = model.init({"params": KEY, "dropout": KEY}, x)

    def loss(params, statistics, x, key):
        y, updated = model.apply(
            {"params": params, "batch_stats": statistics}, x, mutable=["batch_stats"], rngs={"dropout": key}
        )
        return jnp.mean(y**2), updated

    return loss, (variables["params"], variables["batch_stats"], x, KEY)


def optax_step():
    """A training step of optax."""
    optax = pytest.importorskip("optax")
    optimizer, w = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1)), jax.random.normal(KEY, (4, 4))

    def step(w, state, x):
        gradient = jax.grad(lambda w: jnp.mean(jnp.square(jnp.tanh(x @ w) @ w)))(w)
        updates, state = optimizer.update(gradient, state, w)
        return optax.apply_updates(w, updates)

    return step, (w, optimizer.init(w), jax.random.normal(KEY, (5, 4)))


def diffrax_solve():
    """A solution of an ordinary differential equation, of its rate and its start."""
    diffrax = import_or_skip("diffrax")

    def solve(rate, start):
        term = diffrax.ODETerm(lambda t, y, rate: -rate * y)
        solved = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.1, start, args=rate, max_steps=64)
        return jnp.sum(solved.ys)

    return solve, (jnp.float32(2.0), jax.random.normal(KEY, (4,)))


def keras_loss():
    """The loss of a recurrent model of Keras."""
    keras = import_or_skip("keras")
    if keras.backend.backend() != "jax":
        pytest.skip("Keras runs on another backend: set KERAS_BACKEND=jax")
    inputs = keras.Input((STEPS, 6))
    hidden = keras.layers.LayerNormalization()(keras.layers.Dense(8, activation="gelu")(inputs))
    model = keras.Model(inputs, keras.layers.Dense(3)(keras.layers.GRU(4)(hidden)))
    weights = [variable.value for variable in model.trainable_variables]
    rest = [variable.value for variable in model.non_trainable_variables]

    def loss(weights, x):
        return jnp.mean(model.stateless_call(weights, rest, x)[0] ** 2)

    return loss, (weights, jax.random.normal(KEY, (2, STEPS, 6)))
