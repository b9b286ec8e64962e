"""The narrow run and the float64 reference of a program side by side, and how errors flow from operation to operation.

Beside each value of both runs stands its first-order error: the errors of the operands times the derivative of the
operation at the midpoint of both runs, plus the operation's own error, which is taken on the operands of the narrow
run. It is linear in the operations' own errors, so one backward pass gives the share that each of them has in the error
of the result: the inner product of its own errors with the derivative of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import Literal, Var

from supremum.jax_compat import parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Instrument, Outcome, Plan, Step, enter, interpret
from supremum.numerics import error_tallies
from supremum.numerics.error_tallies import Fact, Facts, Probes, has_row, no_facts, with_probe
from supremum.numerics.operation_errors import evaluate_locally, evaluate_pair
from supremum.numerics.paired_values import Pair, difference, full, is_key
from supremum.numerics.plain_runs import PlainRun, in_float64
from supremum.numerics.widening import is_floating, literal_value
from supremum.typing import ArrayLike


class LocalErrors(Instrument[Pair]):
    """Runs a program narrow, and records only the operations' own errors.

    The reference and the errors that flow in are left out: each result is given as if it were the same in both runs.
    """

    def constant(self, variable: Var, value: ArrayLike) -> Pair:
        """A constant, the same in both runs."""
        del variable
        return Pair(value)

    def literal(self, literal: Literal) -> Pair:
        """A literal, the same in both runs."""
        return Pair(literal_value(literal))

    def decider(self, value: Pair) -> Any:
        """The value of the narrow run."""
        return value.narrow

    def run(self, step: Step, operands: Sequence[Pair]) -> Outcome[Pair]:
        """Run a step narrow and in float64 on the same operands."""
        if step.inner:
            return enter(step, operands, self)
        return evaluate_locally(step, operands)

    def empty(self, plan: Plan) -> Facts:
        """The facts of operations that did not run."""
        return no_facts(plan)

    def join(self, earlier: jax.Array, later: jax.Array) -> jax.Array:
        """The sums of facts."""
        return earlier + later


@dataclass(frozen=True, eq=False)
class ErrorFlow(LocalErrors):
    """Runs a program narrow and in float64.

    Args:
        probes: the probes.
    """

    probes: Probes

    def run(self, step: Step, operands: Sequence[Pair]) -> Outcome[Pair]:
        """Run a step in both runs. Both runs of a `while` end when they do, and so run apart."""
        if step.name == p.while_p.name:
            return self._run_apart(step, operands)
        if step.name == p.cond_p.name:
            return self._run_cond(step, operands)
        if step.name == p.remat_p.name:
            return jax.checkpoint(partial(interpret, step.inner[0], instrument=self))(list(operands))
        if step.name == p.scan_p.name and not parameter(step.equation, "length"):
            return enter(step, operands, self)[0], {}  # nothing in it runs
        if step.inner:
            return enter(step, operands, self)
        return evaluate_pair(step, operands, self.probes)

    def carry_form(self, start: list[Pair], following: Callable[..., list[Pair]]) -> Callable[[list[Pair]], list[Pair]]:
        """Give each value all of its parts."""
        del start, following
        return _full

    def branch_form(self, branches: Sequence[Callable[[], list[Pair]]]) -> Callable[[list[Pair]], list[Pair]]:
        """Give each value all of its parts."""
        del branches
        return _full

    def _run_cond(self, step: Step, operands: Sequence[Pair]) -> Outcome[Pair]:
        """Run a branch in both runs; where they choose different branches, run each alone."""
        index = operands[0]
        nothing = {step.number: jnp.zeros(len(Fact))} if has_row(step) else {}

        def same_branch(operands: list[Pair]) -> Outcome[Pair]:
            results, facts = enter(step, operands, self)
            return results, nothing | facts

        def different_branches(operands: list[Pair]) -> Outcome[Pair]:
            results, facts = self._run_apart(step, operands)
            return _full(results), nothing | facts

        if index.wide is None:
            return same_branch(list(operands))
        return lax.cond(index.narrow == index.wide, same_branch, different_branches, list(operands))

    def _run_apart(self, step: Step, operands: Sequence[Pair]) -> Outcome[Pair]:
        """Run a step once narrow and once in float64: the errors of its results are known only as their difference."""
        narrow = [Pair(lax.stop_gradient(each.narrow)) for each in operands]
        results, facts = enter(step, narrow, LocalErrors())
        wide = [lax.stop_gradient(each.reference) for each in operands]
        references, _ = enter(step, wide, PlainRun(in_float64))
        pairs, own = _measured(step, [each.narrow for each in results], references, self.probes)
        return pairs, facts | own


def _full(pairs: list[Pair]) -> list[Pair]:
    return list(map(full, pairs))


def _measured(step: Step, results: Sequence[Any], references: Sequence[Any], probes: Probes) -> Outcome[Pair]:
    """Results whose errors are known only as the difference of both runs: those of loops and decisions."""
    pairs: list[Pair] = []
    gaps: list[Any] = []
    for narrow, wide in zip(results, references, strict=True):
        if not is_floating(narrow):
            pairs.append(Pair(narrow, None if is_key(narrow) else wide))
            gaps.append(None)
            continue
        gap = difference(narrow, wide)
        error = with_probe(gap, gap, None, probes[step.number]) if step.number in probes else gap
        pairs.append(Pair(narrow, wide, error))
        gaps.append(gap)
    jumps = [None if gap is None else lax.full_like(gap, True, bool) for gap in gaps]
    return pairs, error_tallies.facts_of(step, (), results, references, gaps, jumps, pairs)
