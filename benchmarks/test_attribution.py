"""The time and memory of `numerics.attribute`, compared with `jax.grad` of the same function.

make bench
"""

import re
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from supremum import numerics

LAYERS = 4


def loss(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return jnp.mean(x * x)


def arguments(width):
    """Return the weights and the data."""
    for_x, *keys = jax.random.split(jax.random.key(0), LAYERS + 1)
    weights = [jax.random.normal(key, (width, width)) / width**0.5 for key in keys]
    return weights, jax.random.normal(for_x, (width, width))


RUNS = {
    "attribute": lambda *given: numerics.attribute(loss)(*given),
    "gradient": lambda *given: jax.jit(jax.grad(loss))(*given),
}


def seconds(run, given):
    """Return the seconds of a first call, with tracing and compiling."""
    jax.clear_caches()
    start = time.perf_counter()
    jax.block_until_ready(run(*given))
    return time.perf_counter() - start


@pytest.mark.parametrize("width", [256, 1024])
def test_the_time_of_a_first_call(benchmark, figures, width):
    given = arguments(width)
    taken = []
    benchmark.pedantic(lambda: taken.append([seconds(run, given) for run in RUNS.values()]), rounds=5, warmup_rounds=1)
    what = f"a loss of {LAYERS} layers of width {width}, attributed, with compiling"
    figures.compare(what, *zip(*taken, strict=True), "compiling and running its gradient")


def largest():
    """Return the largest memory of this process so far, in bytes."""
    return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])


def grown(name, width):
    """Return the bytes by which a first call raises the largest memory of this process."""
    given = jax.block_until_ready(arguments(width))
    jax.block_until_ready(RUNS[name](*arguments(8)))  # the memory of the compiler
    before = largest()
    jax.block_until_ready(RUNS[name](*given))
    return largest() - before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it in /proc")
def test_the_memory_of_a_call(benchmark, figures):
    width = 2048

    def measured(name):
        done = subprocess.run([sys.executable, __file__, name, str(width)], capture_output=True, text=True, check=True)
        return int(done.stdout)

    ours, theirs = benchmark.pedantic(lambda: [measured(name) for name in RUNS], rounds=1)
    figures.note(
        f"a loss of {LAYERS} layers of width {width:,}, attributed: the largest memory",
        f"{ours / 2**20:.0f} MiB",
        peer=f"its gradient, {theirs / 2**20:.0f} MiB",
        ratio=f"{ours / theirs:.1f} x",
    )


if __name__ == "__main__":
    print(grown(sys.argv[1], int(sys.argv[2])))
