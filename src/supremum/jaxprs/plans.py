"""A program as a plan: its equations in order, each with the plans of the functions that the interpreter enters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import jax.numpy as jnp
from jax.core import eval_jaxpr
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from supremum.jax_compat import CALLS, WITH_RULE, open_jaxpr
from supremum.jax_compat import primitives as p
from supremum.jaxprs.equations import Site, aval_of, callees, walk

CALLED: Final[Mapping[str, str]] = {
    name: parameter for name, parameter in {**CALLS, **WITH_RULE}.items() if name != "shard_map"
}
"""Primitives that call one function with exactly their operands, on the devices that run them, and the parameter that
holds the function.

>>> CALLED["custom_jvp_call"], "shard_map" in CALLED
('call_jaxpr', False)
"""
LOOPS_AND_BRANCHES: Final[Mapping[str, tuple[str, ...]]] = {
    p.scan_p.name: ("jaxpr",),
    p.while_p.name: ("cond_jaxpr", "body_jaxpr"),
    p.cond_p.name: ("branches",),
}
"""Primitives that run functions several times or not at all, and the parameters that hold the functions.

>>> LOOPS_AND_BRANCHES["while"]
('cond_jaxpr', 'body_jaxpr')
"""
_ENTERED: Final = {**{name: (parameter,) for name, parameter in CALLED.items()}, **LOOPS_AND_BRANCHES}


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # JAX writes out what a partial that it compiles holds
class Step:
    """An equation of a plan.

    Args:
        site: the equation and its place in the program.
        equation: the equation, whose lifted literals are variables.
        inner: the plans of the functions that it calls, if it is entered; else none.

    >>> import jax
    >>> (step,) = plan_of(jax.make_jaxpr(jax.jit(jnp.sin))(1.0)).steps
    >>> step.name, [inner.steps[0].name for inner in step.inner]
    ('jit', ['sin'])
    """

    site: Site
    equation: JaxprEqn
    inner: tuple[Plan, ...]

    @property
    def number(self) -> int:
        """Its number in the whole program, in the order of `walk`."""
        return self.site.number

    @property
    def name(self) -> str:
        """The name of its primitive."""
        return self.equation.primitive.name

    def evaluate(self, operands: Sequence[Any], params: Mapping[str, Any] | None = None) -> list[Any]:
        """Evaluate the equation alone, in the context that it was traced in.

        Args:
            operands: the values of all of its operands, literals included.
            params: parameters in place of its own.

        >>> import jax
        >>> (step,) = plan_of(jax.make_jaxpr(lambda x: 2 * x)(1.0)).steps
        >>> step.evaluate([2.0, 3.0])
        [Array(6., dtype=float32, weak_type=True)]
        """
        variables: list[Any] = [Var(aval_of(atom)) for atom in self.equation.invars]
        changed = self.equation.params if params is None else dict(params)
        alone = self.equation.replace(invars=variables, params=changed)
        function = self.site.function.replace(constvars=[], invars=variables, outvars=alone.outvars, eqns=[alone])
        return eval_jaxpr(function, [], *operands)


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # JAX writes out what a partial that it compiles holds
class Plan:
    """A function to interpret.

    Args:
        operands: its operands.
        variables: its constants and lifted literals.
        constants: their values.
        steps: its equations.
        results: its results.

    >>> import jax
    >>> plan = plan_of(jax.make_jaxpr(lambda x: jax.jit(jnp.sin)(x) + 1)(1.0))
    >>> [(step.number, step.name) for step in plan.every_step()]
    [(0, 'jit'), (1, 'sin'), (2, 'add')]
    """

    operands: tuple[Var, ...]
    variables: tuple[Var, ...]
    constants: tuple[Any, ...]
    steps: tuple[Step, ...]
    results: tuple[Any, ...]

    def with_constants(self, constants: tuple[Any, ...]) -> Plan:
        """The same plan with other values of the constants and lifted literals of the function."""
        return replace(self, constants=constants)

    def every_step(self) -> Iterator[Step]:
        """The steps of the function and of those that it enters; a caller comes before what it calls."""
        for step in self.steps:
            yield step
            for inner in step.inner:
                yield from inner.every_step()

    def every_plan(self) -> Iterator[Plan]:
        """The function and those that it enters."""
        yield self
        for step in self.steps:
            for inner in step.inner:
                yield from inner.every_plan()

    def entering_for(self, numbers: Collection[int]) -> Plan:
        """The same plan, which enters only functions that have constants, or one of the steps with these numbers."""

        def has_any(plan: Plan) -> bool:
            return bool(plan.variables) or any(step.inner or step.number in numbers for step in plan.steps)

        def pruned(step: Step) -> Step:
            inner = tuple(plan.entering_for(numbers) for plan in step.inner)
            return replace(step, inner=inner if any(map(has_any, inner)) else ())

        return replace(self, steps=tuple(map(pruned, self.steps)))


def plan_of(program: Jaxpr | ClosedJaxpr, is_lifted: Callable[[Literal], bool] = lambda _: False) -> Plan:
    """Make the plan of a program.

    Args:
        program: the program.
        is_lifted: whether to treat a literal like a constant of its function.

    >>> import jax
    >>> program = jax.make_jaxpr(lambda x: x + 2.5)(1.0)
    >>> plan_of(program, lambda literal: literal.val == 2.5).constants
    (Array(2.5, dtype=float32),)
    """
    sites = walk(program)

    def plan(function: Jaxpr | ClosedJaxpr) -> Plan:
        jaxpr = open_jaxpr(function)
        constants = tuple(function.consts) if isinstance(function, ClosedJaxpr) else ()
        lifted: dict[Var, Any] = {}
        steps = tuple(step(next(sites), lifted) for _ in jaxpr.eqns)
        results = tuple(_lift(jaxpr.outvars, is_lifted, lifted))
        variables, values = (*jaxpr.constvars, *lifted), (*constants, *lifted.values())
        return Plan(tuple(jaxpr.invars), variables, values, steps, results)

    def step(site: Site, lifted: dict[Var, Any]) -> Step:
        plans = [(callee.parameter, plan(callee.function)) for callee in callees(site.equation)]
        operands = _lift(site.equation.invars, is_lifted, lifted)
        names = _ENTERED.get(site.equation.primitive.name, ())
        inner = tuple(inner_plan for name in names for parameter, inner_plan in plans if parameter == name)
        return Step(site, site.equation.replace(invars=operands), inner)

    return plan(program)


def _lift(atoms: Iterable[Any], is_lifted: Callable[[Literal], bool], lifted: dict[Var, Any]) -> list[Any]:
    """Replace literals by variables, and add these to `lifted`."""
    operands: list[Any] = []
    for atom in atoms:
        if isinstance(atom, Literal) and is_lifted(atom):
            variable = Var(atom.aval)
            lifted[variable] = jnp.asarray(atom.val, aval_of(atom).dtype)
            operands.append(variable)
        else:
            operands.append(atom)
    return operands
