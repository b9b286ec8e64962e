"""What a decision on two arrays costs beside the frameworks' own, interleaved, medians of all rounds.

make bench
"""

import statistics
import timeit

import jax.numpy as jnp
import numpy as np
import pytest

import supremum

ROUNDS, CALLS = 25, 4000
NUMPY = {"a": np.zeros(3, np.int8), "b": np.zeros(3, np.float32), "np": np, "result_type": supremum.result_type}
JAX = {"a": jnp.zeros(3, jnp.int8), "b": jnp.zeros(3, jnp.bfloat16), "jnp": jnp, "result_type": supremum.result_type}
CASES = {
    "two NumPy arrays": ("result_type(a, b)", "np.result_type(a, b)", NUMPY),
    "two NumPy arrays, rules named": ("result_type(a, b, rules='torch')", "np.result_type(a, b)", NUMPY),
    "two NumPy arrays of one dtype": ("result_type(a, a)", "np.result_type(a, a)", NUMPY),
    "two JAX arrays": ("result_type(a, b)", "jnp.result_type(a, b)", JAX),
    "two JAX arrays of one dtype": ("result_type(b, b)", "jnp.result_type(b, b)", JAX),
}


@pytest.mark.parametrize("case", CASES)
def test_result_type(benchmark, case):
    ours, theirs, scope = CASES[case]
    taken = {ours: [], theirs: []}

    def measure():
        for statement, seconds in taken.items():
            seconds.append(timeit.timeit(statement, globals=scope, number=CALLS) / CALLS)

    benchmark.pedantic(measure, rounds=ROUNDS, warmup_rounds=1)
    mine, their = (statistics.median(seconds) for seconds in taken.values())
    ratios = sorted(m / t for m, t in zip(*taken.values(), strict=True))
    spread = f"{ratios[len(ratios) // 10]:.2f} to {ratios[-len(ratios) // 10 - 1]:.2f}"
    line = f"{case}: {mine / their:.2f} x {theirs.partition('(')[0]} (80 % of rounds: {spread})"
    benchmark.extra_info["ratio"] = line
    print("", line, sep="\n")
