"""Attributions of programs of Flax, Equinox, optax, diffrax and Keras; a planted line comes first in a transformer."""

import jax
import jax.numpy as jnp
import pytest

from numerics.real_programs import STEPS, diffrax_solve, keras_loss
from supremum import numerics

pytestmark = pytest.mark.slow
KEY = jax.random.key(0)


def check(found):
    assert 0 < found.relative_error < 0.1
    assert found.predicted == pytest.approx(found.error, rel=0.5)


def test_a_planted_line_in_a_transformer_block_of_nnx_comes_first():
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs, width=8, dtype=jnp.bfloat16):
            self.attention = nnx.MultiHeadAttention(2, width, dtype=dtype, rngs=rngs, decode=False)
            self.first = nnx.Linear(width, 2 * width, dtype=dtype, rngs=rngs)
            self.second = nnx.Linear(2 * width, width, dtype=dtype, rngs=rngs)

        def norm(self, x):
            mean = jnp.mean(x, -1, keepdims=True)
            squares = jnp.mean(x * x, -1, keepdims=True)
            variance = squares - mean * mean
            exact = jnp.mean(x.astype("float32"), -1, keepdims=True)  # so that only the variance cancels
            return (x - exact).astype(x.dtype) * jax.lax.rsqrt(jnp.abs(variance) + 1e-6)

        def __call__(self, x):
            x = x + self.attention(self.norm(x))
            return x + self.second(nnx.gelu(self.first(self.norm(x))))

    x = (jax.random.normal(KEY, (2, 4, 8)) + 12).astype(jnp.bfloat16)
    found = numerics.attribute(lambda block, x: block(x), "declared")(Block(nnx.Rngs(0)), x)
    assert (found.rows[0].expression, found.rows[0].effect) == ("squares - mean * mean", "cancellation")


def test_an_mlp_and_a_recurrent_network_of_equinox():
    import equinox as eqx

    mlp = eqx.nn.MLP(4, 3, 8, 2, key=KEY)
    check(numerics.attribute(lambda model, x: jax.vmap(model)(x))(mlp, jax.random.normal(KEY, (5, 4))))
    cell = eqx.nn.GRUCell(3, 4, key=KEY)

    def recurrent(cell, inputs):
        return jax.lax.scan(lambda state, x: (cell(x, state), None), jnp.zeros(4), inputs)[0]

    found = numerics.attribute(recurrent)(cell, jax.random.normal(KEY, (20, 3)))
    check(found)
    assert found.rows[0].runs == 20


def test_a_residual_block_of_linen_with_dropout():
    from flax import linen as nn

    class Residual(nn.Module):
        @nn.compact
        def __call__(self, x):
            y = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(4, (3, 3))(x)))
            return nn.relu(x + nn.Dropout(0.3, deterministic=False)(nn.Conv(4, (3, 3))(y)))

    model, x = Residual(), jax.random.normal(KEY, (2, 4, 4, 4))
    variables = model.init({"params": KEY, "dropout": KEY}, x)

    def run(variables, x, key):
        return model.apply(variables, x, mutable=["batch_stats"], rngs={"dropout": key})

    check(numerics.attribute(run, output=0)(variables, x, KEY))


def test_a_step_of_optax():
    import optax

    optimizer, w = optax.sgd(0.1), jax.random.normal(KEY, (4, 4))

    def step(w, state, x):
        gradient = jax.grad(lambda w: jnp.mean(jnp.square(jnp.tanh(x @ w) @ w)))(w)
        updates, state = optimizer.update(gradient, state, w)
        return optax.apply_updates(w, updates)

    check(numerics.attribute(step)(w, optimizer.init(w), jax.random.normal(KEY, (5, 4))))


def test_a_solve_of_diffrax():
    found = numerics.attribute(diffrax_solve())(jnp.float32(2.0), jax.random.normal(KEY, (4,)))
    check(found)
    assert found.rows[0].effect == "loop"


def test_keras_on_jax():
    loss, weights, x = keras_loss()
    found = numerics.attribute(loss)(weights, x)
    check(found)
    assert STEPS in {row.runs for row in found.rows}
