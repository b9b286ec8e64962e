"""The random programs are reproducible, run, and cover the primitives that the instrumentation handles."""

from functools import cache

import jax
import numpy as np

from numerics.programs import KINDS, program
from supremum.jaxprs import walk

SEEDS = range(15)
OF_KIND = {"loops": {"scan", "while"}, "products": {"dot_general", "conv_general_dilated"}}
COVERED = {
    "jit", "cond", "scan", "while", "custom_jvp_call", "custom_vjp_call", "dot_general", "exp", "conv_general_dilated",
    "reduce_sum", "reduce_max", "sort", "gather", "scatter-add", "select_n", "cumsum", "div", "concatenate",
    "broadcast_in_dim",
}  # fmt: skip


@cache
def traced(seed):
    made = program(seed)
    return made, jax.make_jaxpr(made.function)(*made.arguments)


def test_programs_have_what_their_kind_says_and_cover_the_primitives():
    covered = set()
    for seed in SEEDS:
        made, jaxpr = traced(seed)
        names = {site.equation.primitive.name for site in walk(jaxpr)}
        covered |= names
        assert made.kind == KINDS[seed % len(KINDS)]
        assert made.kind not in OF_KIND or names & OF_KIND[made.kind]
        assert made.kind != "gradients" or len(jaxpr.out_avals) == len(made.arguments)
    assert COVERED - covered == set()
    assert covered & {"remat2", "checkpoint"}  # the name in JAX 0.10, and in other versions


def test_a_seed_makes_the_same_program_again():
    again = program(4)
    assert str(traced(4)[1]) == str(jax.make_jaxpr(again.function)(*again.arguments)) != str(traced(7)[1])


def test_programs_run_and_most_results_are_finite():
    finite = []
    for seed in (16, 17, 33):  # short programs, one of each kind
        made = program(seed)
        finite += [np.isfinite(value).mean() for value in jax.jit(made.function)(*made.arguments)]
    assert np.mean(finite) > 0.5
