"""The time it takes to find the casts of a program as programs grow, and the casts of a Keras 3 model.

make bench
"""

import os
import time
from collections import Counter

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import jax.numpy as jnp

from figures import duration
from optional_packages import import_or_skip
from supremum.tracing import casts, casts_of
from tracing.lowered import converts

EQUATIONS = 20_000


def program(equations):
    """A program with about this many equations, a tenth of them casts."""
    x, y = jax.ShapeDtypeStruct((8,), jnp.bfloat16), jax.ShapeDtypeStruct((8,), jnp.float32)

    def function(x, y):
        for _ in range(equations // 19):
            z = x + y
            z = jnp.sin(z) * jnp.cos(z) - z * z + z / 3 + jnp.exp(z)
            z = z - z * z + z * 2 - 3 * z
            z = jnp.tanh(z)
            x = z.astype(x.dtype)
        return x

    return jax.make_jaxpr(function)(x, y)


def test_twenty_thousand_equations_are_read_in_three_seconds(benchmark, figures):
    traced = program(EQUATIONS)
    assert len(traced.eqns) >= EQUATIONS - 19
    report = benchmark.pedantic(casts_of, args=(traced,), rounds=3)
    assert len(report) == 2 * (EQUATIONS // 19)
    seconds = benchmark.stats.stats.min
    figures.note(f"finding {len(report):,} casts in {len(traced.eqns):,} equations", duration(seconds))
    assert seconds < 3


def test_the_time_grows_with_the_size():
    times = []
    for factor in (1, 2, 4, 8):
        traced = program(factor * EQUATIONS // 8)
        start = time.perf_counter()
        casts_of(traced)
        times.append(time.perf_counter() - start)
    print("\nat 1, 2, 4 and 8 times the size:", ", ".join(f"{seconds:.3f} s" for seconds in times))
    assert times[3] < 2 * 8 * times[0]


def test_a_model_of_keras():
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
    report = casts(function)(weights, x)
    found = Counter((str(cast.source), str(cast.target)) for cast in report if cast.times != 0)
    assert found == converts(jax.jit(function).lower(weights, x).as_text())
    assert {cast.file for cast in report} == {__file__}
    assert set(report.by_class) == {"library"}
    print(f"\n{len(report)} casts in a model of Keras {keras.__version__}")
