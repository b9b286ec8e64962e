"""The interpreter computes what a program computes, and hands each run of an equation to the instrument."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxprs.custom_rules import with_jvp, with_vjp
from supremum.jaxprs import Instrument, interpret, plan_of

X = jnp.linspace(0.1, 1.2, 12).reshape(3, 4)


def scanned(x, **options):
    return lax.scan(lambda carry, row: (jnp.sin(carry) + row, carry * row), x[0], x, **options)


def looped(x):
    return lax.while_loop(lambda carry: jnp.sum(jnp.sin(carry)) < 3, lambda carry: jnp.sin(carry) + 1, x)


def branched(x):
    return lax.switch((jnp.sum(x) > 2).astype(int), [jnp.cos, lambda x: jnp.sin(jnp.sin(x))], x)


def nested(x):
    def body(carry, row):
        return lax.fori_loop(0, 2, lambda _, value: branched(value * 2) + row, carry), row

    return jax.jit(lambda x: lax.scan(body, x[0], x))(x)


PROGRAMS = {
    "jit": jax.jit(lambda x: jnp.sin(x) @ x.T),
    "constants": lambda x: jnp.sin(x) * np.arange(4.0, dtype="float32"),
    "literals as results": lambda x: lax.cond(jnp.sum(x) > 0, lambda: 1.5, lambda: 2.5),
    "remat": jax.grad(lambda x: jnp.sum(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x))),
    "custom_jvp": with_jvp,
    "custom_vjp": jax.grad(lambda x: jnp.sum(with_vjp(x))),
    "scan": scanned,
    "scan in reverse": functools.partial(scanned, reverse=True),
    "scan of no iterations": lambda x: lax.scan(lambda carry, row: (jnp.sin(carry) + row, carry), x[0], x[:0]),
    "unrolled scan": functools.partial(scanned, unroll=3),
    "while": looped,
    "while of each row": jax.vmap(looped),
    "cond": branched,
    "cond of each row": jax.vmap(branched),
    "nested": nested,
    "keys": lambda x: lax.scan(
        lambda key, row: (jax.random.split(key)[0], row + jax.random.uniform(key)), jax.random.key(1), x
    )[1],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_computed_as_it_is(name):
    program = jax.make_jaxpr(PROGRAMS[name])(X)
    results, records = interpret(plan_of(program), [X], Instrument())
    expected = jax.tree.leaves(PROGRAMS[name](X))
    assert records == {}
    assert [each.dtype for each in results] == [each.dtype for each in expected]
    for found, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


class Sines(Instrument):
    """Records how often each sine runs, and the sum and the first of the iterations of the innermost loop around it."""

    def __init__(self, index=0):
        self.index = index

    def in_iteration(self, index):
        return Sines(index)

    def run(self, step, operands):
        results, records = super().run(step, operands)
        if step.name == "sin":
            index = jnp.asarray(self.index, "uint32")
            records = records | {step.number: (jnp.uint32(1), index, index)}
        return results, records

    def empty(self, plan):
        return {step.number: (jnp.uint32(0),) * 3 for step in plan.every_step() if step.name == "sin"}

    def join(self, earlier, later):
        (runs, total, first), (more, others, second) = earlier, later
        return runs + more, total + others, jnp.where(runs > 0, first, second)


def sines(function, *arguments):
    plan = plan_of(jax.make_jaxpr(function)(*arguments))
    _, records = jax.jit(lambda *given: interpret(plan, given, Sines()))(*arguments)
    return [tuple(map(int, records[number])) for number in sorted(records)]


def counted_sines(x):
    """A loop that takes four iterations; the condition runs once more."""
    return lax.while_loop(
        lambda state: jnp.sin(state[1]) + state[0] < 100,
        lambda state: (state[0] + 33, jnp.sin(state[1])),
        (jnp.float32(1), x),
    )


@pytest.mark.parametrize(
    ("function", "runs"),
    [
        (lambda x: jax.jit(jnp.sin)(x), [(1, 0, 0)]),
        (lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, length=4), [(4, 6, 0)]),
        (lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, length=4, reverse=True), [(4, 6, 3)]),
        (lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, length=0), [(0, 0, 0)]),
        (counted_sines, [(4, 6, 0), (3, 3, 0)]),
        (lambda x: lax.cond(x > 0, jnp.sin, lambda x: jnp.sin(jnp.sin(x)), x), [(0, 0, 0), (0, 0, 0), (1, 0, 0)]),
        (lambda x: lax.fori_loop(0, 3, lambda i, c: lax.cond(i > 1, jnp.sin, lambda c: c, c), x), [(1, 2, 2)]),
        (
            lambda x: lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(0, 2, lambda j, c: jnp.sin(c), c), x),
            [(6, 3, 0)],
        ),
    ],
    ids=["call", "scan", "reverse", "no iterations", "while", "cond", "cond in loop", "loop in loop"],
)
def test_records_are_joined_over_the_runs_of_an_equation(function, runs):
    assert sines(function, jnp.float32(0.5)) == runs


class Wider(Instrument):
    """Computes sines in float64, and so widens what loops carry and branches return."""

    def compute(self, step, operands):
        avals = [atom.aval for atom in step.equation.invars]
        declared = [jnp.asarray(each, aval.dtype) for each, aval in zip(operands, avals, strict=True)]
        return [each.astype("float64") if step.name == "sin" else each for each in step.evaluate(declared)]

    def carry_form(self, start, following):
        types = [each.dtype for each in following(start)]
        return lambda values: [value.astype(dtype) for value, dtype in zip(values, types, strict=True)]

    def branch_form(self, branches):
        types = [jnp.result_type(*each) for each in zip(*(branch() for branch in branches), strict=True)]
        return lambda values: [value.astype(dtype) for value, dtype in zip(values, types, strict=True)]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.scan(lambda c, row: (jnp.sin(c), row), x[0], x)[0],
        lambda x: lax.scan(lambda c, row: (jnp.sin(c), row), x[0], x[:0])[0],
        lambda x: lax.while_loop(lambda c: jnp.sum(c) < 0, jnp.sin, x),
        lambda x: lax.cond(jnp.sum(x) > 0, jnp.cos, jnp.sin, x),
    ],
    ids=["scan", "no iterations", "while", "cond"],
)
def test_an_instrument_chooses_the_form_of_what_loops_carry_and_branches_return(function):
    with jax.enable_x64(True):
        plan = plan_of(jax.make_jaxpr(function)(X))
        (result,), _ = interpret(plan, [X], Wider())
    assert result.dtype == "float64"


def test_a_plan_enters_only_what_has_a_step_that_is_asked_for():
    def function(x):
        return lax.scan(lambda c, row: (jnp.sin(c), row), x[0], x), looped(x), jax.jit(jnp.cos)(x)

    plan = plan_of(jax.make_jaxpr(function)(X))
    (number,) = (step.number for step in plan.every_step() if step.name == "cos")
    assert [step.name for step in plan.entering_for({number}).steps if step.inner] == ["jit"]
    assert [step.name for step in plan.steps if step.inner][:2] == ["scan", "while"]
    results, _ = interpret(plan.entering_for({number}), [X], Instrument())
    for found, wanted in zip(results, jax.tree.leaves(function(X)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_lifted_literals_are_constants_of_their_function():
    def function(x):
        return lax.cond(jnp.sum(x) > 0, lambda: x * 2.5, lambda: x)

    plan = plan_of(jax.make_jaxpr(function)(X), lambda literal: np.ndim(literal.val) == 0 and literal.val == 2.5)
    constants = [value for each in plan.every_plan() for value in each.constants]
    assert [float(each) for each in constants] == [2.5]
    results, _ = interpret(plan, [X], Instrument())
    np.testing.assert_allclose(results[0], X * 2.5)
