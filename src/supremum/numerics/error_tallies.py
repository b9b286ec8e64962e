"""What is summed up over the runs of an operation: facts while the program runs, shares in the backward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from supremum.jax_compat import primitives as p
from supremum.jaxprs import CALLED, Plan, Step
from supremum.numerics.paired_values import Pair, magnitude, where_finite
from supremum.numerics.widening import FLOAT64, floating_avals, in_dtype

ADDITIONS: Final = frozenset({"add", "add_any", "sub"})
"""Primitives that add, and may absorb the smaller operand."""


class Fact(IntEnum):
    """What is summed up over the runs of an operation while the program runs."""

    RUNS = 0
    VALUES = 1
    LOCAL_SQUARED = 2
    REFERENCE_SQUARED = 3
    ERROR_SQUARED = 4
    OVERFLOWS = 5
    FLUSHED = 6
    ABSORBED = 7
    JUMPS = 8


class Share(IntEnum):
    """What is summed up over the runs of an operation in the backward pass."""

    SIGNED = 0
    ABSOLUTE = 1
    ABSORBED = 2
    THROUGH = 3
    THROUGH_ABSOLUTE = 4


Facts: TypeAlias = dict[int, Any]
"""The facts of each step, by its number."""
Probes: TypeAlias = Mapping[int, Any]
"""An array of zeros for each step with a row; its cotangent has the step's shares."""


def has_row(step: Step) -> bool:
    """Whether a step has errors of its own."""
    entered = step.name in CALLED or step.name == p.scan_p.name
    return step.site.used and not entered and bool(floating_avals(step.equation.outvars))


def probes_of(plan: Plan) -> dict[int, Any]:
    """The probes of a program."""
    return {step.number: np.zeros(len(Share)) for step in plan.every_step() if has_row(step)}


def _sums(values: Sequence[Any]) -> list[Any]:
    """The sums of several arrays of one shape, in one pass."""
    return lax.reduce(
        tuple(values),
        tuple(np.zeros((), FLOAT64) for _ in values),
        lambda left, right: tuple(a + b for a, b in zip(left, right, strict=True)),
        tuple(range(values[0].ndim)),
    )


@jax.custom_vjp
def with_probe(error: jax.Array, own: jax.Array, absorbed: jax.Array | None, probe: jax.Array) -> jax.Array:  # noqa: ARG001
    """An error, whose cotangent is measured in the backward pass, with infinities and NaNs removed."""
    return error


def _probe_forward(error: Any, own: Any, absorbed: Any, probe: Any) -> Any:  # noqa: ARG001
    return error, (error, own, absorbed)


def _probe_backward(kept: Any, cotangent: Any) -> Any:
    error, own, absorbed = kept
    cotangent = where_finite(cotangent)
    shares, through = jnp.real(cotangent * own), jnp.real(cotangent * error)
    absolute = lax.abs(shares)
    lost = lax.full_like(absolute, 0) if absorbed is None else absolute * lax.convert_element_type(absorbed, FLOAT64)
    return cotangent, None, None, jnp.stack(_sums([shares, absolute, lost, through, lax.abs(through)]))


with_probe.defvjp(_probe_forward, _probe_backward)


def absorbed_of(step: Step, operands: Sequence[Pair], own: Sequence[Any]) -> Any:
    """Where the smaller operand of an addition is lost: half of it and more is rounded away."""
    if step.name not in ADDITIONS or own[0] is None:
        return None
    first, second = (lax.abs(in_dtype(each.narrow, FLOAT64)) for each in operands)
    smaller = lax.min(first, second)
    return (smaller > 0) & (lax.abs(own[0]) >= smaller / 2)


def facts_of(
    step: Step,
    operands: Sequence[Pair],
    narrow: Sequence[Any],
    exact: Sequence[Any],
    own: Sequence[Any],
    jumps: Sequence[Any] | None,
    results: Sequence[Pair] | None,
) -> Facts:
    """The facts of one run of an operation; none for a step that has no errors of its own.

    Args:
        step: the operation.
        operands: its operands.
        narrow: its results in the narrow run.
        exact: its results in float64, on the operands of the narrow run.
        own: its own error in each result; None if it has none.
        jumps: where the error of each result does not follow from those of the operands; None if nowhere.
        results: its results in both runs; None if the reference is unknown.
    """
    if not has_row(step) or all(each is None for each in own):
        return {}
    sums: Any = np.eye(len(Fact))[Fact.RUNS]
    for index, each in enumerate(narrow):
        if own[index] is None:
            continue
        is_zero, absorbed = each == 0, absorbed_of(step, operands, own)
        values = {
            Fact.LOCAL_SQUARED: lax.square(magnitude(own[index])),
            Fact.OVERFLOWS: ~lax.is_finite(jnp.real(each)) & lax.is_finite(jnp.real(exact[index])),
            Fact.FLUSHED: is_zero & (exact[index] != 0),
        }
        if jumps is not None and jumps[index] is not None:
            values[Fact.JUMPS] = jumps[index] & (own[index] != 0)
        if absorbed is not None:
            values[Fact.ABSORBED] = absorbed
        if results is not None:
            values[Fact.REFERENCE_SQUARED] = where_finite(lax.square(magnitude(results[index].wide)))
            values[Fact.ERROR_SQUARED] = lax.square(magnitude(lax.stop_gradient(results[index].error)))
        totals = _sums([lax.convert_element_type(lax.stop_gradient(value), FLOAT64) for value in values.values()])
        columns = dict(zip(values, totals, strict=True))
        sums = sums + jnp.stack([
            jnp.asarray(float(each.size) if fact is Fact.VALUES else columns.get(fact, 0.0), FLOAT64) for fact in Fact
        ])  # fmt: skip
    return {step.number: jnp.asarray(sums)}


def no_facts(plan: Plan) -> Facts:
    """The facts of the steps of a plan before it runs."""
    return {step.number: jnp.zeros(len(Fact)) for step in plan.every_step() if has_row(step)}
