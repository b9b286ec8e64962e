"""The times of a compiled step under autocast compared with casts by hand, and of tracing with and without autocast.

make bench
"""

import re
import time

import jax
import jax.numpy as jnp
import pytest

from models import by_hand, init, plain, train_step
from supremum.mixed_precision import autocast


def interleaved(calls, rounds):
    """Return the seconds of each call in each round; in a round every call runs once."""
    taken = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            taken[name].append(time.perf_counter() - start)
    return taken


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("width", [256, 1024])
def test_a_step_compared_with_casts_by_hand(benchmark, figures, dtype, width):
    args = init(width, 4), jax.random.normal(jax.random.key(1), (width, width)), jnp.zeros(width, int)
    steps = {"autocast": autocast(plain, f"mixed_{dtype}"), "by hand": by_hand(dtype), "by hand again": by_hand(dtype)}
    compiled = {name: jax.jit(train_step(function)).lower(*args).compile() for name, function in steps.items()}
    converts = {name: len(re.findall(r"= \S+ convert\(", step.as_text())) for name, step in compiled.items()}
    taken = {}

    def measure():
        for name, seconds in interleaved({n: lambda s=s: s(*args) for n, s in compiled.items()}, 1).items():
            taken.setdefault(name, []).extend(seconds)

    benchmark.pedantic(measure, rounds=41, warmup_rounds=2)
    for name in ("autocast", "by hand again"):
        figures.compare(f"a step of width {width}, {dtype}, {name}", taken[name], taken["by hand"], "casts by hand")
    print(f"converts in the compiled step: {converts}")


def chain(equations):
    """Return a new function with this many equations, so that JAX has not traced it before."""

    def function(w, x):
        for _ in range(equations // 4):
            x = jnp.tanh(x @ w) * 0.5 + x
        return x

    return function


def test_tracing(benchmark, figures):
    args = jnp.ones((8, 8)), jnp.ones((4, 8))

    def measure():
        for equations in (1000, 5000, 20000):
            taken = {"make_jaxpr of autocast": [], "make_jaxpr": []}
            for _ in range(5):
                for name, wrap in zip(taken, (autocast, lambda f: f), strict=True):
                    function = wrap(chain(equations))
                    start = time.perf_counter()
                    jax.make_jaxpr(function)(*args)
                    taken[name].append(time.perf_counter() - start)
            figures.compare(f"tracing {equations:,} equations under autocast", *taken.values(), "`make_jaxpr`")

    benchmark.pedantic(measure, rounds=1)
