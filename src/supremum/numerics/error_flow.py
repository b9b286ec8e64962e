"""The narrow run and the float64 reference of a program side by side, and how errors flow from operation to operation.

Beside each value of both runs stands its first-order error: the errors of the operands times the derivative of the
operation at the midpoint of both runs, plus the operation's own error, which is taken on the operands of the narrow
run. It is linear in the operations' own errors, so one backward pass gives the share that each of them has in the error
of the result: the inner product of its own errors with the derivative of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any, Final, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal

from supremum.formats import as_format
from supremum.jax_compat import parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs import aval_of, loop_operands
from supremum.numerics import plain_runs
from supremum.numerics.plain_runs import CALLED, Plan, Step, kept_where
from supremum.numerics.widening import (
    FLOAT64,
    KERNELS,
    evaluate_as_declared,
    evaluate_in,
    in_dtype,
    is_floating,
    literal_value,
)

MOVES: Final = frozenset(
    {"broadcast_in_dim", "concatenate", "copy", "copy_p", "dynamic_slice", "dynamic_update_slice", "gather", "name",
     "optimization_barrier", "pad", "reshape", "rev", "scatter", "select_n", "slice", "sort", "split", "squeeze",
     "stack", "tile", "top_k", "transpose", "unstack"}
)  # fmt: skip
"""Primitives that move the values of their operands and make none."""
_EXACT: Final = MOVES | {
    "abs", "ceil", "clamp", "complex", "conj", "cummax", "cummin", "floor", "imag", "iota", "max", "min", "neg", "real",
    "reduce_max", "reduce_min", "reduce_window_max", "reduce_window_min", "round", "sign", "stop_gradient",
}  # fmt: skip
"""Primitives whose results need no rounding."""
_LINEAR: Final = MOVES - {"select_n", "sort", "top_k"} | {
    "convert_element_type", "cumsum", "neg", "reduce_precision", "reduce_sum", "stop_gradient"
}  # fmt: skip
"""Primitives that are linear in their floating operands."""
_EXACT_SIZE: Final = 4
"""XLA computes formats of fewer bytes in a wider one, and may not round between two operations."""
_STEPS: Final = frozenset({"ceil", "floor", "round", "sign"})
"""Primitives whose results jump where their operands pass a limit, and do not change between two limits."""
ADDITIONS: Final = frozenset({"add", "add_any", "sub"})


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


@partial(jax.tree_util.register_dataclass, data_fields=["narrow", "wide", "gap", "error"], meta_fields=[])
@dataclass(frozen=True, slots=True)
class Pair:
    """A value in both runs.

    Args:
        narrow: the value of the narrow run.
        wide: the value of the reference; None if it is the same number.
        gap: how far the narrow value is from the reference, for floating values; infinities count as the largest number
            of the format, and what cannot be told as zero. None if it is zero.
        error: the first-order prediction of that; None if it is zero.
    """

    narrow: Any
    wide: Any = None
    gap: Any = None
    error: Any = None

    @property
    def reference(self) -> Any:
        """The value of the reference."""
        return in_dtype(self.narrow, FLOAT64) if self.wide is None else self.wide

    @property
    def middle(self) -> Any:
        """The midpoint of both runs."""
        return self.reference if self.gap is None else self.reference + self.gap / 2


Facts: TypeAlias = dict[int, Any]
"""The facts of each step, by its number."""
Probes: TypeAlias = Mapping[int, Any]
"""An array of zeros for each step with a row; its cotangent has the step's shares."""


def has_row(step: Step) -> bool:
    """Whether a step has errors of its own."""
    entered = step.name in CALLED or step.name == p.scan_p.name
    return step.used and not entered and any(is_floating(aval_of(var)) for var in step.equation.outvars)


def probes_of(plan: Plan) -> dict[int, Any]:
    """The probes of a program."""
    return {step.number: np.zeros(len(Share)) for step in plan.every_step() if has_row(step)}


# Values


def _finite(value: Any) -> Any:
    """A value in float64, with the largest number of its format in place of infinity."""
    wide, largest = in_dtype(value, FLOAT64), float(as_format(value.dtype).max)
    is_complex = jnp.issubdtype(wide.dtype, jnp.complexfloating)
    return wide if wide.dtype == value.dtype or is_complex else lax.clamp(-largest, wide, largest)


def _where_finite(value: Any, otherwise: Any = None) -> Any:
    rest = lax.full_like(value, 0) if otherwise is None else otherwise
    return lax.select(lax.is_finite(jnp.real(value)), value, rest)


def _difference(narrow: Any, wide: Any) -> Any:
    return _where_finite(_finite(narrow) - wide)


def _magnitude(value: Any) -> Any:
    return value if value.dtype == FLOAT64 else jnp.abs(value)


def _sums(values: Sequence[Any]) -> list[Any]:
    """The sums of several arrays of one shape, in one pass."""
    return lax.reduce(
        tuple(values),
        tuple(np.zeros((), FLOAT64) for _ in values),
        lambda left, right: tuple(a + b for a, b in zip(left, right, strict=True)),
        tuple(range(values[0].ndim)),
    )


@jax.custom_vjp
def _probed(error: Any, own: Any, absorbed: Any, probe: Any) -> Any:  # noqa: ARG001
    """An error, whose cotangent is measured in the backward pass, with infinities and NaNs removed."""
    return error


def _probed_forward(error: Any, own: Any, absorbed: Any, probe: Any) -> Any:  # noqa: ARG001
    return error, (error, own, absorbed)


def _probed_backward(kept: Any, cotangent: Any) -> Any:
    error, own, absorbed = kept
    cotangent = _where_finite(cotangent)
    shares, through = jnp.real(cotangent * own), jnp.real(cotangent * error)
    absolute = lax.abs(shares)
    lost = lax.full_like(absolute, 0) if absorbed is None else absolute * lax.convert_element_type(absorbed, FLOAT64)
    return cotangent, None, None, jnp.stack(_sums([shares, absolute, lost, through, lax.abs(through)]))


_probed.defvjp(_probed_forward, _probed_backward)


# Evaluation


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
            results, found = _alone(plan, step, given, probes, local_only=local_only)
        else:
            results, found = runner(step, given, probes, local_only=local_only)
        facts |= found
        values.update(zip(step.equation.outvars, results, strict=True))
    return [read(atom) for atom in plan.jaxpr.outvars], facts


def _alone(
    plan: Plan, step: Step, operands: Sequence[Pair], probes: Probes, *, local_only: bool
) -> tuple[list[Pair], Facts]:
    """Run an equation that is not entered."""
    equation, jaxpr = step.equation, plan.jaxpr
    narrow = [_rounded(each) for each in evaluate_as_declared(jaxpr, equation, [each.narrow for each in operands])]
    is_same = local_only or all(each.wide is None for each in operands)
    if is_same and (step.name in _EXACT or not any(map(is_floating, narrow))):
        return list(map(Pair, narrow)), {}
    in_float64 = partial(evaluate_in, jaxpr, equation, dtype=FLOAT64)
    floats = [index for index, each in enumerate(operands) if is_floating(each.narrow)]
    is_known = step.name in _EXACT or step.name in KERNELS
    on_narrow: Any = None if is_known else in_float64(operands=[each.narrow for each in operands])
    if is_same:
        assert on_narrow is not None
        wide = on_narrow
    else:
        wide = in_float64(operands=[each.reference for each in operands])
    if local_only:
        own = [_difference(n, w) if is_floating(n) else None for n, w in zip(narrow, wide, strict=True)]
        return list(map(Pair, narrow)), _facts(step, operands, narrow, wide, own, None, None)
    flowed = _flowed(step, in_float64, operands, floats, narrow)
    broken = None if is_same else _broken(step, operands)
    results: list[Pair] = []
    owned: list[Any] = []
    jumps: list[Any] = []
    for index, (each, reference, flow) in enumerate(zip(narrow, wide, flowed, strict=True)):
        if not is_floating(each):
            results.append(Pair(each, None if is_same else reference))
            owned.append(None)
            jumps.append(None)
            continue
        gap = _difference(each, reference)
        own: Any = None if is_known else gap if is_same else _difference(each, on_narrow[index])
        jump = None
        if flow is not None and not is_same and step.name not in _LINEAR and flow.dtype == FLOAT64:
            flow, jump = _corrected(flow, gap if own is None else gap - own)
        error: Any = own if flow is None else flow if own is None else flow + own
        if not is_same:
            if flow is None and any(operands[place].error is not None for place in floats):
                jump = lax.full_like(gap, True, bool)
            elif flow is not None and step.name not in _LINEAR:
                unknown = ~lax.is_finite(jnp.real(error))
                jump = unknown if jump is None else jump | unknown
            if broken is not None:
                spread = jnp.broadcast_to(broken, each.shape)
                jump = spread if jump is None else jump | spread
            if jump is not None:
                none = lax.full_like(gap, 0)
                error = lax.select(jump, gap, none if error is None else error)
                own = lax.select(jump, gap, none if own is None else own)
        jumps.append(jump)
        owned.append(own)
        results.append(Pair(each, reference, gap, error))
    absorbed = _absorbed(step, operands, owned)
    if step.number in probes:
        results = [
            result
            if own is None
            else Pair(result.narrow, result.wide, result.gap, _probed(result.error, own, absorbed, probes[step.number]))
            for result, own in zip(results, owned, strict=True)
        ]
    if all(own is None for own in owned):
        return results, {}
    return results, _facts(step, operands, narrow, wide if on_narrow is None else on_narrow, owned, jumps, results)


def _rounded(value: Any) -> Any:
    """A result as its format holds it: XLA may keep more digits of a narrow format between operations."""
    return lax.optimization_barrier(value) if is_floating(value) and value.dtype.itemsize < _EXACT_SIZE else value


def _flowed(
    step: Step, in_float64: Callable[..., list[Any]], operands: Sequence[Pair], floats: Sequence[int], narrow: Any
) -> list[Any]:
    """The errors of the operands, through the derivative at the midpoint; None for a result that has none."""
    nothing: list[Any] = [None] * len(narrow)
    moved = [index for index in floats if operands[index].error is not None]
    if not moved or step.name in _STEPS or step.name in KERNELS:
        return nothing
    given = [each.narrow for each in operands]

    def of_floats(*values: Any) -> list[Any]:
        for index, value in zip(floats, values, strict=True):
            given[index] = value
        return [each for each in in_float64(operands=given) if is_floating(each)]

    if len(floats) == 1 and step.name in _LINEAR:
        tangents: Sequence[Any] = of_floats(operands[floats[0]].error)
    else:
        points = [operands[index].middle for index in floats]
        errors = [
            lax.full_like(point, 0) if operands[index].error is None else operands[index].error
            for index, point in zip(floats, points, strict=True)
        ]
        try:
            _, tangents = jax.jvp(of_floats, tuple(points), tuple(errors))
        except NotImplementedError:  # the primitive has no derivative
            return nothing
    rest = iter(tangents)
    return [next(rest) if is_floating(each) else None for each in narrow]


def _corrected(flow: Any, difference: Any) -> tuple[Any, Any]:
    """Errors through the secant between both runs, where the derivative at the midpoint is off by a factor of two.

    That is the case near poles, kinks and saturation, where one of the runs may have left the finite numbers.

    Args:
        flow: the errors through the derivative at the midpoint.
        difference: how the results on the operands of both runs differ.

    Returns:
        The errors, and where there is no secant: a derivative of zero, and a difference.
    """
    known = lax.stop_gradient(flow)
    own, other = lax.abs(known), lax.abs(difference)
    is_close = (known * difference >= 0) & (own <= 2 * other) & (other <= 2 * own)
    is_zero = known == 0
    slope = difference / lax.select(is_zero, lax.full_like(known, 1), known)
    return flow * lax.select(is_close, lax.full_like(known, 1), slope), is_zero & ~is_close


def _broken(step: Step, operands: Sequence[Pair]) -> Any:
    """Where integers or truth values that the operation takes differ between both runs; None if they are the same."""
    changed = [each for each in operands if each.wide is not None and not is_floating(each.narrow)]
    if not changed:
        return None
    differ = [each.narrow != each.wide for each in changed]
    if step.name == "select_n":
        return differ[0]
    return jnp.stack([jnp.any(each) for each in differ]).any()


def _absorbed(step: Step, operands: Sequence[Pair], own: Sequence[Any]) -> Any:
    """Where the smaller operand of an addition is lost: half of it and more is rounded away."""
    if step.name not in ADDITIONS or own[0] is None:
        return None
    first, second = (lax.abs(in_dtype(each.narrow, FLOAT64)) for each in operands)
    smaller = lax.min(first, second)
    return (smaller > 0) & (lax.abs(own[0]) >= smaller / 2)


def _facts(
    step: Step,
    operands: Sequence[Pair],
    narrow: Sequence[Any],
    exact: Sequence[Any],
    own: Sequence[Any],
    jumps: Sequence[Any] | None,
    results: Sequence[Pair] | None,
) -> Facts:
    if not has_row(step):
        return {}
    sums: Any = np.eye(len(Fact))[Fact.RUNS]
    for index, each in enumerate(narrow):
        if own[index] is None:
            continue
        is_zero, absorbed = each == 0, _absorbed(step, operands, own)
        found = {
            Fact.LOCAL_SQUARED: lax.square(_magnitude(own[index])),
            Fact.OVERFLOWS: ~lax.is_finite(jnp.real(each)) & lax.is_finite(jnp.real(exact[index])),
            Fact.FLUSHED: is_zero & (exact[index] != 0),
        }
        if jumps is not None and jumps[index] is not None:
            found[Fact.JUMPS] = jumps[index] & (own[index] != 0)
        if absorbed is not None:
            found[Fact.ABSORBED] = absorbed
        if results is not None:
            found[Fact.REFERENCE_SQUARED] = _where_finite(lax.square(_magnitude(results[index].wide)))
            found[Fact.ERROR_SQUARED] = lax.square(_magnitude(lax.stop_gradient(results[index].error)))
        totals = _sums([lax.convert_element_type(lax.stop_gradient(value), FLOAT64) for value in found.values()])
        columns = dict(zip(found, totals, strict=True))
        sums = sums + jnp.stack([
            jnp.asarray(float(each.size) if fact is Fact.VALUES else columns.get(fact, 0.0), FLOAT64) for fact in Fact
        ])  # fmt: skip
    return {step.number: jnp.asarray(sums)}


def _measured(
    step: Step, results: Sequence[Any], references: Sequence[Any], probes: Probes
) -> tuple[list[Pair], Facts]:
    """Results whose errors are known only as the difference of both runs: those of loops and decisions."""
    pairs: list[Pair] = []
    gaps: list[Any] = []
    for narrow, wide in zip(results, references, strict=True):
        if not is_floating(narrow):
            pairs.append(Pair(narrow, None if _is_key(narrow) else wide))
            gaps.append(None)
            continue
        gap = _difference(narrow, wide)
        error = _probed(gap, gap, None, probes[step.number]) if step.number in probes else gap
        pairs.append(Pair(narrow, wide, gap, error))
        gaps.append(gap)
    jumps = [None if gap is None else lax.full_like(gap, True, bool) for gap in gaps]
    return pairs, _facts(step, (), results, references, gaps, jumps, pairs)


def _is_key(value: Any) -> bool:
    return jnp.issubdtype(value.dtype, jax.dtypes.extended)


def full(pair: Pair) -> Pair:
    """A value with all of its parts, so that it has the same structure in every iteration."""
    if _is_key(pair.narrow):
        return Pair(pair.narrow)
    if not is_floating(pair.narrow):
        return Pair(pair.narrow, pair.reference)
    wide = pair.reference
    gap, error = (lax.full_like(wide, 0) if each is None else each for each in (pair.gap, pair.error))
    return Pair(pair.narrow, wide, gap, error)


def _no_facts(plans: Sequence[Plan]) -> Facts:
    return {step.number: jnp.zeros(len(Fact)) for plan in plans for step in plan.every_step() if has_row(step)}


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
    (carry, facts), outputs = lax.scan(iterate, (start, _no_facts([body])), stacked, **options)
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
    facts = _sum(_no_facts([condition, body]), found)
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
    nothing = _no_facts(step.inner)
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
