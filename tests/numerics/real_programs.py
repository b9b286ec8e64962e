"""Programs of other libraries that several tests of numerics run."""

import jax
import jax.numpy as jnp
import pytest

from optional_packages import import_or_skip

STEPS = 5
"""The steps of the recurrence in the loss of Keras."""


def diffrax_solve():
    """A solution of an ordinary differential equation, as a function of its rate and its start."""
    diffrax = import_or_skip("diffrax")

    def solve(rate, start):
        term = diffrax.ODETerm(lambda t, y, rate: -rate * y)
        solved = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.1, start, args=rate, max_steps=64)
        return jnp.sum(solved.ys)

    return solve


def keras_loss():
    """A loss of a recurrent model of Keras, its weights, and a batch."""
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

    return loss, weights, jax.random.normal(jax.random.key(0), (2, STEPS, 6))
