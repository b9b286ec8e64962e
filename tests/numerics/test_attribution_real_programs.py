"""Attributions of programs of Flax, Equinox, optax, diffrax and Keras; a planted line comes first in a transformer."""

import jax
import jax.numpy as jnp
import pytest

from numerics.real_programs import (
    KEY,
    STEPS,
    diffrax_solve,
    equinox_gru,
    equinox_mlp,
    keras_loss,
    linen_residual,
    optax_step,
)
from supremum import numerics

pytestmark = pytest.mark.slow


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


PROGRAMS = [
    # a program, the part of its result to explain, and what its rows have
    (equinox_mlp, None, lambda rows: True),
    (equinox_gru, None, lambda rows: STEPS in {row.runs for row in rows}),
    (linen_residual, 0, lambda rows: any(row.primitive == "conv_general_dilated" for row in rows)),
    (optax_step, None, lambda rows: any(row.backward for row in rows)),
    (diffrax_solve, None, lambda rows: rows[0].effect == "loop"),
    (keras_loss, None, lambda rows: STEPS in {row.runs for row in rows}),
]


@pytest.mark.parametrize(("program", "output", "expected"), PROGRAMS)
def test_the_shares_of_a_program_add_up_to_its_error(program, output, expected):
    function, arguments = program()
    found = numerics.attribute(function, output=output)(*arguments)
    assert 0 < found.relative_error < 0.1
    assert found.predicted == pytest.approx(found.error, rel=0.5)
    assert expected(found.rows)
