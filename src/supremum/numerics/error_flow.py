"""The narrow run and the float64 reference of a program side by side, and how errors flow from operation to operation.

Beside each value of both runs stands its first-order error: the errors of the operands times the derivative of the
operation at the midpoint of both runs, plus the operation's own error, which is taken on the operands of the narrow
run. It is linear in the operations' own errors, so one backward pass gives the share that each of them has in the error
of the result: the inner product of its own errors with the derivative of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal

from supremum.jax_compat import parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs import loop_operands
from supremum.numerics import error_tallies, plain_runs
from supremum.numerics.error_tallies import Fact, Facts, Probes, has_row, no_facts, probed
from supremum.numerics.operation_errors import run_alone
from supremum.numerics.paired_values import Pair, difference, full, is_key
from supremum.numerics.plain_runs import CALLED, Plan, Step, kept_where
from supremum.numerics.widening import is_floating, literal_value


def evaluate(
    plan: Plan, operands: Sequence[Pair], probes: Probes, *, local_only: bool = False
) -> tuple[list[Pair], Facts]:
    """Run a function narrow and in float64.

    Args:
        plan: the function.
        operands: its operands.
        probes: the probes.
        local_only: whether to leave out the reference and the errors that flow in: only the operations' own errors are
            known then, and each result is given as if it were the same in both runs.

    Returns:
        The results, and the facts of the steps in the function.
    """
    values: dict[Any, Pair] = {
        var: Pair(value) for var, value in zip(plan.jaxpr.constvars, plan.constants, strict=False)
    }
    values.update(zip(plan.jaxpr.invars, operands, strict=True))
    facts: Facts = {}

    def read(atom: Any) -> Pair:
        return Pair(literal_value(atom)) if isinstance(atom, Literal) else values[atom]

    for step in plan.steps:
        given = [read(atom) for atom in step.equation.invars]
        runner = _RUNNERS.get(step.name)
        if runner is None:
            results, found = run_alone(plan, step, given, probes, local_only=local_only)
        else:
            results, found = runner(step, given, probes, local_only=local_only)
        facts |= found
        values.update(zip(step.equation.outvars, results, strict=True))
    return [read(atom) for atom in plan.jaxpr.outvars], facts


def _measured(
    step: Step, results: Sequence[Any], references: Sequence[Any], probes: Probes
) -> tuple[list[Pair], Facts]:
    """Results whose errors are known only as the difference of both runs: those of loops and decisions."""
    pairs: list[Pair] = []
    gaps: list[Any] = []
    for narrow, wide in zip(results, references, strict=True):
        if not is_floating(narrow):
            pairs.append(Pair(narrow, None if is_key(narrow) else wide))
            gaps.append(None)
            continue
        gap = difference(narrow, wide)
        error = probed(gap, gap, None, probes[step.number]) if step.number in probes else gap
        pairs.append(Pair(narrow, wide, gap, error))
        gaps.append(gap)
    jumps = [None if gap is None else lax.full_like(gap, True, bool) for gap in gaps]
    return pairs, error_tallies.facts_of(step, (), results, references, gaps, jumps, pairs)


def _sum(left: Facts, right: Facts) -> Facts:
    return {number: total + right[number] if number in right else total for number, total in left.items()}


def _run_call(step: Step, operands: Sequence[Pair], probes: Probes, *, local_only: bool) -> tuple[list[Pair], Facts]:
    """Run a called function in place; rules for derivatives do not count, because errors flow through its values."""
    return evaluate(step.inner[0], operands, probes, local_only=local_only)


def _run_remat(step: Step, operands: Sequence[Pair], probes: Probes, *, local_only: bool) -> tuple[list[Pair], Facts]:
    def run(values: list[Pair], probes: Probes) -> tuple[list[Pair], Facts]:
        return evaluate(step.inner[0], values, probes, local_only=local_only)

    return jax.checkpoint(run)(list(operands), _within(step, probes))


def _within(step: Step, probes: Probes) -> dict[int, Any]:
    return {
        each.number: probes[each.number] for plan in step.inner for each in plan.every_step() if each.number in probes
    }


def _run_scan(step: Step, operands: Sequence[Pair], probes: Probes, *, local_only: bool) -> tuple[list[Pair], Facts]:
    (body,), loop = step.inner, loop_operands(step.equation)
    constants = list(operands[: loop.constants])

    def filled(pair: Pair) -> Pair:
        return Pair(pair.narrow) if local_only else full(pair)

    def iterate(state: tuple[list[Pair], Facts], slices: list[Pair]) -> Any:
        carry, facts = state
        results, found = evaluate(body, [*constants, *carry, *slices], probes, local_only=local_only)
        return (list(map(filled, results[: loop.carries])), _sum(facts, found)), results[loop.carries :]

    start = list(map(filled, operands[loop.constants : loop.constants + loop.carries]))
    if not parameter(step.equation, "length"):
        return [*start, *map(Pair, plain_runs.empty_outputs(step))], {}
    options = {name: parameter(step.equation, name) for name in ("length", "reverse", "unroll")}
    stacked = list(operands[loop.constants + loop.carries :])
    (carry, facts), outputs = lax.scan(iterate, (start, no_facts([body])), stacked, **options)
    return [*carry, *outputs], facts


def _narrow_while(step: Step, operands: Sequence[Any]) -> tuple[list[Any], Facts]:
    (condition, body), loop = step.inner, loop_operands(step.equation)
    of_condition, constants = operands[: loop.condition], operands[loop.condition : loop.first_carry]

    def asked(carry: Sequence[Any]) -> tuple[Any, Facts]:
        (going_on,), found = evaluate(condition, list(map(Pair, [*of_condition, *carry])), {}, local_only=True)
        return going_on.narrow, found

    def iterate(state: Any) -> Any:
        going_on, carry, facts = state
        pairs, found = evaluate(body, list(map(Pair, [*constants, *carry])), {}, local_only=True)
        results = [each.narrow for each in pairs]
        if going_on.ndim:
            results = [kept_where(going_on, new, old) for new, old in zip(results, carry, strict=True)]
        next_going_on, found_asking = asked(results)
        return next_going_on, results, _sum(facts, {**found, **found_asking})

    start = [jnp.asarray(each) if is_floating(each) else each for each in operands[loop.first_carry :]]
    going_on, found = asked(start)
    facts = _sum(no_facts([condition, body]), found)
    _, carry, facts = lax.while_loop(lambda state: state[0].any(), iterate, (going_on, start, facts))
    return carry, facts


def _run_while(step: Step, operands: Sequence[Pair], probes: Probes, *, local_only: bool) -> tuple[list[Pair], Facts]:
    results, facts = _narrow_while(step, [lax.stop_gradient(each.narrow) for each in operands])
    if local_only:
        return list(map(Pair, results)), facts
    wide = [lax.stop_gradient(each.reference) for each in operands]
    references = plain_runs.run_step(step, wide, plain_runs.in_float64)
    pairs, own = _measured(step, results, references, probes)
    return pairs, {**facts, **own}


def _run_cond(step: Step, operands: Sequence[Pair], probes: Probes, *, local_only: bool) -> tuple[list[Pair], Facts]:
    index, *given = operands
    nothing = no_facts(step.inner)
    if not local_only and has_row(step):
        nothing[step.number] = jnp.zeros(len(Fact))

    def together(plan: Plan) -> Callable[..., Any]:
        def run(values: list[Pair], probes: Probes) -> Any:
            results, found = evaluate(plan, values, probes, local_only=local_only)
            return (results if local_only else list(map(full, results))), {**nothing, **found}

        return run

    def apart(values: list[Pair], probes: Probes) -> Any:
        narrow = [Pair(lax.stop_gradient(each.narrow)) for each in values]
        branches = [partial(_narrow_results, plan, nothing=nothing) for plan in step.inner]
        results, facts = lax.switch(index.narrow, branches, narrow)
        wide = [lax.stop_gradient(each.reference) for each in (index, *values)]
        references = plain_runs.run_step(step, wide, plain_runs.in_float64)
        pairs, own = _measured(step, results, references, probes)
        return list(map(full, pairs)), {**facts, **own}

    branches = list(map(together, step.inner))
    chosen = index.narrow
    if not local_only and index.wide is not None:
        chosen = jnp.where(index.narrow == index.wide, _clipped(index.narrow, len(branches)), len(branches))
        branches.append(apart)
    known = {**_within(step, probes), **({step.number: probes[step.number]} if step.number in probes else {})}
    return lax.switch(chosen, branches, list(given), known)


def _clipped(index: Any, branches: int) -> Any:
    return jnp.clip(index.astype(np.int32), 0, branches - 1)


def _narrow_results(plan: Plan, values: Sequence[Pair], nothing: Facts) -> Any:
    results, found = evaluate(plan, values, {}, local_only=True)
    return [each.narrow for each in results], {**nothing, **found}


_RUNNERS: Mapping[str, Callable[..., tuple[list[Pair], Facts]]] = {
    **dict.fromkeys(CALLED, _run_call),
    p.remat_p.name: _run_remat,
    p.scan_p.name: _run_scan,
    p.while_p.name: _run_while,
    p.cond_p.name: _run_cond,
}
