"""One operation in the narrow run and in float64: the errors that flow through it, and the error that it makes itself.

The derivative is taken at the midpoint of both runs, and the operation's own error on the operands of the narrow run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from supremum.jaxprs import Step
from supremum.numerics import error_tallies
from supremum.numerics.error_tallies import Facts, Probes, absorbed_of, with_probe
from supremum.numerics.paired_values import Pair, difference
from supremum.numerics.plain_runs import evaluate_as_declared, evaluate_in
from supremum.numerics.widening import EXACT, FLOAT64, KERNELS, MOVES, is_floating

_LINEAR: Final = MOVES - {"select_n", "sort", "top_k"} | {
    "convert_element_type", "cumsum", "neg", "reduce_precision", "reduce_sum", "stop_gradient"
}  # fmt: skip
"""Primitives that are linear in their floating operands."""
_EXACT_SIZE: Final = 4
"""XLA computes formats of fewer bytes in a wider one, and may not round between two operations."""
_STEPS: Final = frozenset({"ceil", "floor", "round", "sign"})
"""Primitives whose results jump where their operands pass a limit, and do not change between two limits."""


class _Result(NamedTuple):
    """A result in both runs.

    Args:
        pair: its values.
        own: the error that the operation itself makes; None if it makes none.
        jump: where its error does not follow from those of the operands; None if nowhere.
    """

    pair: Pair
    own: Any = None
    jump: Any = None


def evaluate_locally(step: Step, operands: Sequence[Pair]) -> tuple[list[Pair], Facts]:
    """Run an equation narrow, and measure only its own errors: its results are as if they were the same in both runs.

    Args:
        step: an equation that is not entered.
        operands: its operands.
    """
    narrow, exact, own = _own_errors(step, operands)
    return list(map(Pair, narrow)), error_tallies.facts_of(step, operands, narrow, exact, own, None, None)


def evaluate_pair(step: Step, operands: Sequence[Pair], probes: Probes) -> tuple[list[Pair], Facts]:
    """Run an equation narrow and in float64.

    Args:
        step: an equation that is not entered.
        operands: its operands in both runs.
        probes: the probes of the program.
    """
    narrow, exact, own = _own_errors(step, operands)
    if all(each.wide is None for each in operands):
        triples = zip(narrow, exact, own, strict=True)
        results = [_Result(Pair(each, wide, error), error) for each, wide, error in triples]
    else:
        references, results = _on_different_operands(step, operands, narrow, own)
        exact = [wide if each is None else each for each, wide in zip(exact, references, strict=True)]
    errors = [each.own for each in results]
    pairs = [each.pair for each in results]
    if step.number in probes:
        absorbed, probe = absorbed_of(step, operands, errors), probes[step.number]
        pairs = [
            pair if error is None else replace(pair, error=with_probe(pair.error, error, absorbed, probe))
            for pair, error in zip(pairs, errors, strict=True)
        ]
    jumps = [each.jump for each in results]
    return pairs, error_tallies.facts_of(step, operands, narrow, exact, errors, jumps, pairs)


def _own_errors(step: Step, operands: Sequence[Pair]) -> tuple[list[Any], list[Any], list[Any]]:
    """The results in the narrow run, in float64 on the same operands, and how they differ.

    The last two are None for results that need no rounding.
    """
    values = [each.narrow for each in operands]
    narrow = [_rounded(each) for each in evaluate_as_declared(step, values)]
    if step.name in EXACT or step.name in KERNELS or not any(map(is_floating, narrow)):
        return narrow, [None] * len(narrow), [None] * len(narrow)
    wide = evaluate_in(step, values, FLOAT64)
    exact = [each if is_floating(value) else None for each, value in zip(wide, narrow, strict=True)]
    own = [None if each is None else difference(value, each) for each, value in zip(exact, narrow, strict=True)]
    return narrow, exact, own


def _on_different_operands(
    step: Step, operands: Sequence[Pair], narrow: Sequence[Any], own: Sequence[Any]
) -> tuple[list[Any], list[_Result]]:
    """The results of the reference, and the results in both runs."""
    in_float64 = partial(evaluate_in, step, dtype=FLOAT64)
    references = in_float64(operands=[each.reference for each in operands])
    floats = [index for index, each in enumerate(operands) if is_floating(each.narrow)]
    flows = _flow(step, in_float64, operands, floats, narrow)
    broken = _differing_decisions(step, operands)
    is_moved = any(operands[index].error is not None for index in floats)
    results = [
        _result(step, each, wide, error, flow, broken, is_moved=is_moved)
        if is_floating(each)
        else _Result(Pair(each, wide))
        for each, wide, error, flow in zip(narrow, references, own, flows, strict=True)
    ]
    return references, results


def _result(step: Step, narrow: Any, wide: Any, own: Any, flow: Any, broken: Any, *, is_moved: bool) -> _Result:
    """A floating result on operands that differ between both runs.

    Args:
        step: the operation.
        narrow: the result in the narrow run.
        wide: the result of the reference.
        own: the operation's own error; None if it has none.
        flow: the errors of the operands in it; None if there is no derivative.
        broken: where decisions differ, as `_differing_decisions` returns it.
        is_moved: whether an operand has an error.
    """
    gap, jump = difference(narrow, wide), None
    if flow is not None and step.name not in _LINEAR and flow.dtype == FLOAT64:
        flow, jump = _secant(flow, gap if own is None else gap - own)
    error = own if flow is None else flow if own is None else flow + own
    jump = _jumps_of(step, gap, flow, error, jump, broken, is_moved=is_moved)
    if jump is not None:
        zero = lax.full_like(gap, 0)
        error = lax.select(jump, gap, zero if error is None else error)
        own = lax.select(jump, gap, zero if own is None else own)
    return _Result(Pair(narrow, wide, error), own, jump)


def _jumps_of(step: Step, gap: Any, flow: Any, error: Any, jump: Any, broken: Any, *, is_moved: bool) -> Any:
    """Where a result jumps, so that all of its gap is an error of the operation; None if it jumps nowhere.

    Args:
        step: the operation.
        gap: how the result differs between both runs.
        flow: the errors of the operands in it; None if there is no derivative.
        error: the whole error of the result.
        jump: where there is no secant, as `_secant` returns it, or None.
        broken: where decisions differ, as `_differing_decisions` returns it.
        is_moved: whether an operand has an error.
    """
    if flow is None and is_moved:
        jump = lax.full_like(gap, True, bool)
    elif flow is not None and step.name not in _LINEAR:
        unknown = ~lax.is_finite(jnp.real(error))
        jump = unknown if jump is None else jump | unknown
    if broken is not None:
        spread = jnp.broadcast_to(broken, gap.shape)
        jump = spread if jump is None else jump | spread
    return jump


def _rounded(value: Any) -> Any:
    """A result as its format holds it: XLA may keep more digits of a narrow format between operations."""
    return lax.optimization_barrier(value) if is_floating(value) and value.dtype.itemsize < _EXACT_SIZE else value


def _flow(
    step: Step, in_float64: Callable[..., list[Any]], operands: Sequence[Pair], floats: Sequence[int], narrow: Any
) -> list[Any]:
    """The errors of the operands, through the derivative at the midpoint; None for a result that has none."""
    nothing: list[Any] = [None] * len(narrow)
    moved = [index for index in floats if operands[index].error is not None]
    if not moved or step.name in _STEPS or step.name in KERNELS:
        return nothing

    def of_floats(*values: Any) -> list[Any]:
        arguments = [each.narrow for each in operands]
        for index, value in zip(floats, values, strict=True):
            arguments[index] = value
        return [each for each in in_float64(operands=arguments) if is_floating(each)]

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


def _secant(flow: Any, change: Any) -> tuple[Any, Any]:
    """Errors through the secant between both runs, where the derivative at the midpoint is off by a factor of two.

    That is the case near poles, kinks and saturation, where one of the runs may have left the finite numbers.

    Args:
        flow: the errors through the derivative at the midpoint.
        change: how the results on the operands of both runs differ.

    Returns:
        The errors, and where there is no secant: a derivative of zero, and results that differ.
    """
    known = lax.stop_gradient(flow)
    own, other = lax.abs(known), lax.abs(change)
    is_close = (known * change >= 0) & (own <= 2 * other) & (other <= 2 * own)
    is_zero = known == 0
    slope = change / lax.select(is_zero, lax.full_like(known, 1), known)
    return flow * lax.select(is_close, lax.full_like(known, 1), slope), is_zero & ~is_close


def _differing_decisions(step: Step, operands: Sequence[Pair]) -> Any:
    """Where integers or truth values that the operation takes differ between both runs; None if they are the same."""
    changed = [each for each in operands if each.wide is not None and not is_floating(each.narrow)]
    if not changed:
        return None
    differ = [each.narrow != each.wide for each in changed]
    if step.name == "select_n":
        return differ[0]
    return jnp.stack([jnp.any(each) for each in differ]).any()
