"""Programs cut into segments, each of which is compiled and run alone: XLA needs less time and memory for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
from jax.extend.core import DropVar, Literal, Var

from supremum.jaxprs.equations import aval_of
from supremum.jaxprs.plans import LOOPS_AND_BRANCHES, Plan, Step


def inlined(plan: Plan) -> Plan:
    """The same plan without calls: the steps of called functions stand in their place.

    >>> import jax, jax.numpy as jnp
    >>> from supremum.jaxprs.plans import plan_of
    >>> program = jax.make_jaxpr(lambda x: jax.jit(jnp.sin)(x) + 1)(1.0)
    >>> [step.name for step in inlined(plan_of(program)).steps]
    ['sin', 'add']
    """
    variables, constants = list(plan.variables), list(plan.constants)

    def steps_in(plan: Plan, known: dict[Any, Any]) -> Iterator[Step]:
        for step in plan.steps:
            operands = [_known(atom, known) for atom in step.equation.invars]
            if step.inner and step.name not in LOOPS_AND_BRANCHES:
                (called,) = step.inner
                variables.extend(constant := [Var(aval_of(each)) for each in called.variables])
                constants.extend(called.constants)
                inside = dict(zip((*called.operands, *called.variables), (*operands, *constant), strict=True))
                yield from steps_in(called, inside)
                results = [_known(atom, inside) for atom in called.results]
                known.update(zip(step.equation.outvars, results, strict=True))
            else:
                # A function may be called twice, so its variables are not used.
                results = [each if isinstance(each, DropVar) else Var(each.aval) for each in step.equation.outvars]
                known.update(zip(step.equation.outvars, results, strict=True))
                yield replace(step, equation=step.equation.replace(invars=operands, outvars=results))

    known: dict[Any, Any] = {}
    steps = tuple(steps_in(plan, known))
    results = tuple(_known(atom, known) for atom in plan.results)
    return Plan(plan.operands, tuple(variables), tuple(constants), steps, results)


def _known(atom: Any, known: dict[Any, Any]) -> Any:
    return atom if isinstance(atom, Literal) else known.get(atom, atom)


@dataclass(frozen=True, eq=False, repr=False)
class Segment:
    """Some steps of a plan that follow each other.

    Args:
        plan: the steps; its operands are the values that earlier steps made, its results those that later ones read.
        last: the operands that nothing reads later.
    """

    plan: Plan
    last: tuple[Var, ...]


def segments_of(plan: Plan, cost: Callable[[Step], int], most: int) -> list[Segment]:
    """Cut a plan into segments.

    Args:
        plan: the plan; calls are never cut.
        cost: the cost of a step.
        most: what the steps of a segment may cost together, unless it is one step.

    >>> import jax, jax.numpy as jnp
    >>> from supremum.jaxprs.plans import plan_of
    >>> program = jax.make_jaxpr(lambda x: jnp.sin(x) * jnp.cos(x))(1.0)
    >>> [
    ...     [step.name for step in segment.plan.steps]
    ...     for segment in segments_of(plan_of(program), lambda step: 1, 2)
    ... ]
    [['sin', 'cos'], ['mul']]
    """
    groups: list[list[Step]] = []
    total = most
    for step in plan.steps:
        total += cost(step)
        if total > most or not groups:
            groups.append([])
            total = cost(step)
        groups[-1].append(step)
    segments: list[Segment] = []
    later = {atom for atom in plan.results if isinstance(atom, Var)}
    for group in reversed(groups):
        made = [each for step in group for each in step.equation.outvars if not isinstance(each, DropVar)]
        read = dict.fromkeys(atom for step in group for atom in step.equation.invars if isinstance(atom, Var))
        operands = tuple(each for each in read if each not in set(made))
        results = tuple(each for each in made if each in later)
        last = tuple(each for each in operands if each not in later)
        segments.append(Segment(Plan(operands, (), (), tuple(group), results), last))
        later.update(operands)
    return segments[::-1]


def run_segments(
    plan: Plan,
    segments: Sequence[Segment],
    run: Callable[[int, list[Any]], Sequence[Any]],
    constants: Sequence[Any],
    operands: Sequence[Any],
) -> list[Any]:
    """Run the segments of a plan, and drop each value when nothing reads it any more.

    Args:
        plan: the plan.
        segments: its segments.
        run: runs a segment, given its index and operands; returns its results.
        constants: the constants of the plan.
        operands: its operands.

    Returns:
        Its results.
    """
    values: dict[Var, Any] = dict(zip((*plan.variables, *plan.operands), (*constants, *operands), strict=True))
    for index, segment in enumerate(segments):
        results = run(index, [values[each] for each in segment.plan.operands])
        values.update(zip(segment.plan.results, results, strict=True))
        for each in segment.last:
            del values[each]
    return [
        jnp.asarray(atom.val, aval_of(atom).dtype) if isinstance(atom, Literal) else values[atom]
        for atom in plan.results
    ]
