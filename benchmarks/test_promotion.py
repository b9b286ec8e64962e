"""The time of `result_type` on two arrays, compared with the same function of NumPy and JAX.

make bench
"""

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
def test_result_type(benchmark, figures, case):
    ours, theirs, scope = CASES[case]
    taken = {ours: [], theirs: []}

    def measure():
        for statement, seconds in taken.items():
            seconds.append(timeit.timeit(statement, globals=scope, number=CALLS) / CALLS)

    benchmark.pedantic(measure, rounds=ROUNDS, warmup_rounds=1)
    figures.compare(f"`result_type` of {case}", taken[ours], taken[theirs], f"`{theirs.partition('(')[0]}`")
