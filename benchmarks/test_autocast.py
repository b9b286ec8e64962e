"""Autocast beside casts by hand: the compiled step, and what it costs to trace.

make bench
"""

import re
import statistics
import time

import jax
import jax.numpy as jnp
import pytest

from models import by_hand, init, plain, train_step
from supremum.mixed_precision import autocast


def interleaved(calls, rounds):
    """Seconds of each call, round after round."""
    taken = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            taken[name].append(time.perf_counter() - start)
    return taken


def ratio_line(taken, ours, theirs):
    mine, their = statistics.median(taken[ours]), statistics.median(taken[theirs])
    ratios = sorted(m / t for m, t in zip(taken[ours], taken[theirs], strict=True))
    spread = f"{ratios[len(ratios) // 10]:.2f} to {ratios[-len(ratios) // 10 - 1]:.2f}"
    return (
        f"{ours}: {mine / their:.3f} x {theirs} ({1e3 * mine:.1f} and {1e3 * their:.1f} ms; 80 % of rounds: {spread})"
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("width", [256, 1024])
def test_the_step_beside_casts_by_hand(benchmark, dtype, width):
    args = init(width, 4), jax.random.normal(jax.random.key(1), (width, width)), jnp.zeros(width, int)
    steps = {"autocast": autocast(plain, f"mixed_{dtype}"), "by hand": by_hand(dtype), "by hand again": by_hand(dtype)}
    compiled = {name: jax.jit(train_step(function)).lower(*args).compile() for name, function in steps.items()}
    converts = {name: len(re.findall(r"= \S+ convert\(", step.as_text())) for name, step in compiled.items()}
    taken = {}

    def measure():
        for name, seconds in interleaved({n: lambda s=s: s(*args) for n, s in compiled.items()}, 1).items():
            taken.setdefault(name, []).extend(seconds)

    benchmark.pedantic(measure, rounds=41, warmup_rounds=2)
    line = f"{dtype}, width {width}: {ratio_line(taken, 'autocast', 'by hand')}"
    noise = ratio_line(taken, "by hand again", "by hand")
    benchmark.extra_info |= {"ratio": line, "noise": noise, "converts": converts}
    print("", line, f"  noise: {noise}", f"  converts in the compiled step: {converts}", sep="\n")


def chain(equations):
    """A new function of so many equations, so that nothing about it has been traced before."""

    def function(w, x):
        for _ in range(equations // 4):
            x = jnp.tanh(x @ w) * 0.5 + x
        return x

    return function


def test_tracing(benchmark):
    args = jnp.ones((8, 8)), jnp.ones((4, 8))
    lines = []

    def measure():
        for equations in (1000, 5000, 20000):
            taken = {"make_jaxpr of autocast": [], "make_jaxpr": []}
            for _ in range(5):
                for name, wrap in zip(taken, (autocast, lambda f: f), strict=True):
                    function = wrap(chain(equations))
                    start = time.perf_counter()
                    jax.make_jaxpr(function)(*args)
                    taken[name].append(time.perf_counter() - start)
            lines.append(f"{equations:5} equations: {ratio_line(taken, *taken)}")

    benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info["ratios"] = lines
    print("", *lines, sep="\n")
