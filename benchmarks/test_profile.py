"""The time of a measured training step and of its compilation, compared with the step alone.

make bench
"""

import time

import jax
import jax.numpy as jnp
import pytest

import gpt
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
    given, jitted = arguments(batch), jax.jit(step)
    running = interleaved(benchmark, (profile(jitted, histogram=histogram), jitted), given)
    counted = "four formats and exponents" if histogram else "four formats"
    what = f"a step of {LAYERS} layers of width {WIDTH}, batch {batch:,}, {counted}, profiled"
    figures.compare(what, *zip(*running, strict=True), "the step")


MEASURES = {"profile": profile, "first_nonfinite": first_nonfinite, "attribute": lambda fn: attribute(fn, output=1)}


@pytest.mark.parametrize("name", MEASURES)
def test_a_later_call(benchmark, figures, name):
    given, jitted = arguments(128), jax.jit(step)
    taken = interleaved(benchmark, (MEASURES[name](jitted), jitted), given)
    what = f"a jitted step of {LAYERS} layers of width {WIDTH}, batch 128, under {name}, in later calls"
    figures.compare(what, *zip(*taken, strict=True), "the step")


@pytest.mark.parametrize(("layers", "name"), [(2, "profile"), (6, "profile"), (2, "first_nonfinite")])
def test_a_training_step_of_a_gpt(benchmark, figures, layers, name):
    function, given = gpt.training_step(layers)
    jitted = jax.jit(function)
    what = f"a step of a GPT of {layers} layers under {name}"

    def measure_it():
        jax.block_until_ready(MEASURES[name](jitted)(*given))

    def compile_it():
        jitted.lower(*given).compile()

    def seconds(call):
        jax.clear_caches()
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    first = [(seconds(measure_it), seconds(compile_it)) for _ in range(3)]
    figures.compare(f"{what}, first call", *zip(*first, strict=True), "compiling the step")
    later = interleaved(benchmark, (MEASURES[name](jitted), jitted), given)
    figures.compare(f"{what}, later calls", *zip(*later, strict=True), "the step")


def test_the_counts_do_not_grow_with_sizes_and_iterations(benchmark, figures):
    """Compare the bytes of all counts of a loop of 10 iterations over 8 rows with 1,000 over 1,024."""

    def loop(length, x):
        return jax.lax.fori_loop(0, length, lambda _, x: jnp.sin(x) * 2, x)

    def size(length, rows):
        found = profile(lambda x: loop(length, x))(jnp.ones((rows, 8)))
        return sum(leaf.nbytes for leaf in jax.tree.leaves(found.tallies))

    small = benchmark.pedantic(size, args=(10, 8), rounds=1)
    assert small == size(1_000, 1_024)
    figures.note("the counts of a loop of two operations, whatever its sizes and iterations", f"{small:,} bytes")
