"""The time of `numerics.attribute` beside that of `jax.grad` of the same function.

make bench
"""

import time

import jax
import jax.numpy as jnp
import pytest

from supremum import numerics

WIDTH, LAYERS = 256, 4


def loss(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return jnp.mean(x * x)


def seconds(run, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.slow
def test_attribution_beside_a_compiled_gradient():
    keys = jax.random.split(jax.random.key(0), LAYERS + 1)
    weights = [jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5 for key in keys[1:]]
    x = jax.random.normal(keys[0], (WIDTH, WIDTH))
    gradient = jax.jit(jax.grad(loss))
    start = time.perf_counter()
    compiled = gradient.lower(weights, x).compile()
    compiling = time.perf_counter() - start
    running = seconds(lambda: compiled(weights, x))
    start = time.perf_counter()
    found = numerics.attribute(loss)(weights, x)
    whole = time.perf_counter() - start
    print(f"compiling and running a gradient: {compiling + running:.2f} s; attribute, with a change: {whole:.2f} s")
    assert found.predicted == pytest.approx(found.error, rel=0.1)
