"""The random programs are reproducible, run, and cover the primitives that the instrumentation handles."""

from functools import cache

import jax
import numpy as np

from numerics.programs import KINDS, LONGEST, program
from supremum.jaxprs import walk

SEEDS = range(15)
LOOPS = {"scan", "while"}
PRODUCTS = {"dot_general", "conv_general_dilated"}
COVERED = {
    "jit", "remat2", "checkpoint", "cond", "scan", "while", "custom_jvp_call", "custom_vjp_call", "dot_general", "exp",
    "conv_general_dilated", "reduce_sum", "reduce_max", "sort", "gather", "scatter-add", "select_n", "cumsum", "div",
    "concatenate", "broadcast_in_dim",
}  # fmt: skip


@cache
def traced(seed):
    made = program(seed)
    return made, jax.make_jaxpr(made.function)(*made.arguments)


def test_programs_trace_and_have_what_their_kind_says():
    for seed in SEEDS:
        made, jaxpr = traced(seed)
        names = {site.equation.primitive.name for site in walk(jaxpr)}
        assert made.kind == KINDS[seed % 3]
        assert made.operations <= LONGEST
        assert made.kind != "loops" or names & LOOPS
        assert made.kind != "products" or names & PRODUCTS
        assert made.kind != "gradients" or len(jaxpr.out_avals) == len(made.arguments)


def test_programs_cover_the_primitives():
    names = {site.equation.primitive.name for seed in SEEDS for site in walk(traced(seed)[1])}
    assert {name for name in COVERED - names if name not in ("remat2", "checkpoint")} == set()
    assert names & {"remat2", "checkpoint"}  # the name in JAX 0.10, and in other versions


def test_a_seed_makes_the_same_program_again():
    again = program(4)
    assert str(traced(4)[1]) == str(jax.make_jaxpr(again.function)(*again.arguments)) != str(traced(7)[1])


def test_programs_run_and_most_results_are_finite():
    finite = []
    for seed in (16, 17, 33):  # short programs, one of each kind
        made = program(seed)
        finite += [np.isfinite(value).mean() for value in jax.jit(made.function)(*made.arguments)]
    assert np.mean(finite) > 0.5
