"""The time of finding the casts of a program compared with tracing it, by size, and the casts of a Keras 3 model.

make bench
"""

import os
import time
from collections import Counter

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import jax.numpy as jnp
import pytest

from optional_packages import import_or_skip
from supremum.tracing import casts, casts_of
from tracing.lowered import converts

EQUATIONS = 20_000


def traced(equations):
    """Trace a program with about this many equations, a tenth of them casts; also return the seconds it took."""
    x, y = jax.ShapeDtypeStruct((8,), jnp.bfloat16), jax.ShapeDtypeStruct((8,), jnp.float32)

    def function(x, y):
        for _ in range(equations // 19):
            z = x + y
            z = jnp.sin(z) * jnp.cos(z) - z * z + z / 3 + jnp.exp(z)
            z = z - z * z + z * 2 - 3 * z
            z = jnp.tanh(z)
            x = z.astype(x.dtype)
        return x

    start = time.perf_counter()
    return jax.make_jaxpr(function)(x, y), time.perf_counter() - start


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_finding_casts_compared_with_tracing(benchmark, figures, factor):
    equations = factor * EQUATIONS // 8
    taken, tracing, found = [], [], set()

    def measure():
        program, seconds = traced(equations)
        tracing.append(seconds)
        start = time.perf_counter()
        report = casts_of(program)
        taken.append(time.perf_counter() - start)
        found.add((len(program.eqns), len(report)))

    benchmark.pedantic(measure, rounds=5, warmup_rounds=1)
    ((length, count),) = found
    assert length >= equations - 19
    assert count == 2 * (equations // 19)
    figures.compare(f"finding {count:,} casts in {length:,} equations", taken, tracing, "tracing them")


def test_a_model_of_keras(benchmark, figures):
    keras = import_or_skip("keras")
    keras.config.set_dtype_policy("mixed_bfloat16")
    inputs = keras.Input((5, 16))
    hidden = keras.layers.LayerNormalization()(keras.layers.Dense(16, activation="gelu")(inputs))
    hidden = hidden + keras.layers.MultiHeadAttention(2, 8, flash_attention=False)(hidden, hidden)
    model = keras.Model(inputs, keras.layers.Dense(3, dtype="float32")(keras.layers.GRU(8)(hidden)))
    keras.config.set_dtype_policy("float32")
    weights = [variable.value for variable in model.trainable_variables]
    rest = [variable.value for variable in model.non_trainable_variables]

    def function(weights, x):
        return model.stateless_call(weights, rest, x)[0]

    x = jnp.ones((2, 5, 16))
    report = benchmark.pedantic(casts(function), args=(weights, x), rounds=1)
    found = Counter((str(cast.source), str(cast.target)) for cast in report if cast.times != 0)
    assert found == converts(jax.jit(function).lower(weights, x).as_text())
    assert {cast.file for cast in report} == {__file__}
    assert set(report.by_class) == {"library"}
    figures.note(f"the casts of a small model of Keras {keras.__version__}", f"{len(report)} casts")
