"""The time of a measured training step and of its compilation, compared with the step alone.

make bench
"""

import time

import jax
import jax.numpy as jnp
import pytest

from supremum.numerics import attribute, first_nonfinite, profile

WIDTH, LAYERS = 1024, 3


def step(layers, x, labels):
    """Make one step of gradient descent of a network of three dense layers."""

    def loss(layers):
        h = x
        for w, b in layers[:-1]:
            h = jax.nn.relu(h @ w + b)
        w, b = layers[-1]
        return jnp.mean((h @ w + b - labels) ** 2)

    value, gradients = jax.value_and_grad(loss)(layers)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, layers, gradients), value


def arguments(batch):
    """Return the layers, the data and the labels."""
    *keys, for_x, for_labels = jax.random.split(jax.random.key(0), LAYERS + 2)
    layers = [(jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5, jnp.zeros(WIDTH)) for key in keys]
    return layers, jax.random.normal(for_x, (batch, WIDTH)), jax.random.normal(for_labels, (batch, WIDTH))


def compiled(function, given):
    """Compile a function, and return it with the seconds that tracing and compiling took."""
    jax.clear_caches()
    start = time.perf_counter()
    made = jax.jit(function).lower(*given).compile()
    return made, time.perf_counter() - start


def interleaved(benchmark, functions, given):
    """Return the seconds of each function in each round."""
    rounds = []

    def measure():
        seconds = []
        for function in functions:
            start = time.perf_counter()
            jax.block_until_ready(function(*given))
            seconds.append(time.perf_counter() - start)
        rounds.append(seconds)

    benchmark.pedantic(measure, rounds=20, warmup_rounds=2)
    return rounds[2:]


@pytest.mark.parametrize("histogram", [False, True], ids=["counts", "histogram"])
@pytest.mark.parametrize("batch", [128, 1024])
def test_a_training_step(benchmark, figures, batch, histogram):
    given = arguments(batch)
    both = profile(step, histogram=histogram), step
    compiling, programs = [], ()
    for _ in range(3):
        programs, seconds = zip(*(compiled(function, given) for function in both), strict=True)
        compiling.append(seconds)
    running = interleaved(benchmark, programs, given)
    counted = "four formats and exponents" if histogram else "four formats"
    what = f"a step of {LAYERS} layers of width {WIDTH}, batch {batch:,}, {counted}"
    figures.compare(f"{what}, profiled", *zip(*running, strict=True), "the step")
    figures.compare(f"{what}, compiled", *zip(*compiling, strict=True), "compiling the step")


MEASURES = {"profile": profile, "first_nonfinite": first_nonfinite, "attribute": lambda fn: attribute(fn, output=1)}


@pytest.mark.parametrize("name", MEASURES)
def test_a_later_call(benchmark, figures, name):
    given, jitted = arguments(128), jax.jit(step)
    taken = interleaved(benchmark, (MEASURES[name](jitted), jitted), given)
    what = f"a jitted step of {LAYERS} layers of width {WIDTH}, batch 128, under {name}, in later calls"
    figures.compare(what, *zip(*taken, strict=True), "the step")


def test_the_counts_do_not_grow_with_sizes_and_iterations(benchmark, figures):
    """Compare the bytes of all counts of a loop of 10 iterations over 8 rows with 1,000 over 1,024."""

    def loop(length, x):
        return jax.lax.fori_loop(0, length, lambda _, x: jnp.sin(x) * 2, x)

    def size(length, rows):
        found = profile(lambda x: loop(length, x))(jnp.ones((rows, 8)))
        return sum(leaf.nbytes for tallies in found._tallies for leaf in jax.tree.leaves(tallies))

    small = benchmark.pedantic(size, args=(10, 8), rounds=1)
    assert small == size(1_000, 1_024)
    figures.note("the counts of a loop of two operations, whatever its sizes and iterations", f"{small:,} bytes")
