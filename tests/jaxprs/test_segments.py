"""Programs cut into segments compute what they compute whole, and hold no value longer than it is needed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Literal

from supremum.jaxprs import Instrument, inlined, interpret, plan_of, run_segments, segments_of


@jax.jit
def twice(x):
    return x * 2, x


def calls(x, y):
    """Call a function twice, one with constants, a checkpoint and a loop; return an operand and a literal, too."""
    a, _ = twice(x)
    b, c = twice(a)
    d = jax.checkpoint(lambda v: jnp.sin(v) + np.arange(3.0, dtype="float32"))(b)
    e = jax.lax.fori_loop(0, 3, lambda _, v: v + c, d)
    return e * y, y, 2.5


ARGUMENTS = jnp.asarray([1.0, 2.0, 3.0]), jnp.float32(0.5)
PLAN = inlined(plan_of(jax.make_jaxpr(calls)(*ARGUMENTS)))


def run(segments):
    """Run the segments; also return how many values each one took."""
    taken = []

    def run_one(index, operands):
        taken.append(len(operands))
        return interpret(segments[index].plan, operands, Instrument())[0]

    return run_segments(PLAN, segments, run_one, PLAN.constants, ARGUMENTS), taken


def test_calls_are_inlined_with_variables_of_their_own_and_loops_are_not():
    assert [step.name for step in PLAN.steps] == ["mul", "mul", "sin", "add", "scan", "mul"]
    made = [each for step in PLAN.steps for each in step.equation.outvars]
    assert len(set(made)) == len(made)
    assert len(PLAN.variables) == len(PLAN.constants) == 1
    assert isinstance(PLAN.results[2], Literal)


@pytest.mark.parametrize(("most", "names"), [(1, 6), (2, 3), (5, 2), (100, 1)])
def test_segments_compute_what_the_program_computes(most, names):
    segments = segments_of(PLAN, lambda step: 1, most)
    assert len(segments) == names
    assert [step for segment in segments for step in segment.plan.steps] == list(PLAN.steps)
    results, _ = run(segments)
    for one, other in zip(results, calls(*ARGUMENTS), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == jnp.asarray(other).dtype


def test_a_step_that_costs_more_than_a_segment_is_one():
    costs = {"sin": 9, "add": 0}
    segments = segments_of(PLAN, lambda step: costs.get(step.name, 2), 4)
    names = [[step.name for step in each.plan.steps] for each in segments]
    assert names == [["mul", "mul"], ["sin"], ["add", "scan", "mul"]]


def test_a_segment_takes_what_it_reads_and_returns_what_later_ones_read():
    segments = segments_of(PLAN, lambda step: 1, 2)
    _, taken = run(segments)
    assert taken == [1, 2, 3]
    assert [len(each.plan.results) for each in segments] == [2, 1, 1]
    assert [len(each.last) for each in segments] == [1, 2, 2]  # an operand that is a result is kept
