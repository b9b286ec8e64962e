"""One operation in the narrow run and in float64: the errors that flow through it, and the error that it makes itself.

The derivative is taken at the midpoint of both runs, and the operation's own error on the operands of the narrow run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax

from supremum.jaxprs import Step
from supremum.numerics import error_tallies
from supremum.numerics.error_tallies import Facts, Probes, absorbed_of, probed
from supremum.numerics.paired_values import Pair, difference
from supremum.numerics.plain_runs import evaluate_as_declared, evaluate_in
from supremum.numerics.widening import FLOAT64, KERNELS, is_floating

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


def run_alone(step: Step, operands: Sequence[Pair], probes: Probes, *, local_only: bool) -> tuple[list[Pair], Facts]:
    """Run an equation that is not entered."""
    narrow = [_rounded(each) for each in evaluate_as_declared(step, [each.narrow for each in operands])]
    is_same = local_only or all(each.wide is None for each in operands)
    is_known = step.name in _EXACT or step.name in KERNELS
    if is_same and (is_known or not any(map(is_floating, narrow))):
        return list(map(Pair, narrow)), {}
    in_float64 = partial(evaluate_in, step, dtype=FLOAT64)
    floats = [index for index, each in enumerate(operands) if is_floating(each.narrow)]
    on_narrow: Any = None if is_known else in_float64(operands=[each.narrow for each in operands])
    wide = on_narrow if is_same else in_float64(operands=[each.reference for each in operands])
    if local_only:
        own = [difference(n, w) if is_floating(n) else None for n, w in zip(narrow, wide, strict=True)]
        return list(map(Pair, narrow)), error_tallies.facts_of(step, operands, narrow, wide, own, None, None)
    flowed = _flowed(step, in_float64, operands, floats, narrow)
    broken = None if is_same else _broken(step, operands)
    is_moved = any(operands[place].error is not None for place in floats)
    results: list[Pair] = []
    owned: list[Any] = []
    jumps: list[Any] = []
    for index, (each, reference, flow) in enumerate(zip(narrow, wide, flowed, strict=True)):
        if not is_floating(each):
            results.append(Pair(each, None if is_same else reference))
            owned.append(None)
            jumps.append(None)
            continue
        gap = difference(each, reference)
        own: Any = None if is_known else gap if is_same else difference(each, on_narrow[index])
        jump = None
        if flow is not None and not is_same and step.name not in _LINEAR and flow.dtype == FLOAT64:
            flow, jump = _corrected(flow, gap if own is None else gap - own)
        error: Any = own if flow is None else flow if own is None else flow + own
        if not is_same:
            jump = _jumps_of(step, gap, flow, error, jump, broken, is_moved=is_moved)
            if jump is not None:
                none = lax.full_like(gap, 0)
                error = lax.select(jump, gap, none if error is None else error)
                own = lax.select(jump, gap, none if own is None else own)
        jumps.append(jump)
        owned.append(own)
        results.append(Pair(each, reference, gap, error))
    absorbed = absorbed_of(step, operands, owned)
    if step.number in probes:
        results = [
            result
            if own is None
            else Pair(result.narrow, result.wide, result.gap, probed(result.error, own, absorbed, probes[step.number]))
            for result, own in zip(results, owned, strict=True)
        ]
    if all(own is None for own in owned):
        return results, {}
    return results, error_tallies.facts_of(
        step, operands, narrow, wide if on_narrow is None else on_narrow, owned, jumps, results
    )


def _jumps_of(step: Step, gap: Any, flow: Any, error: Any, jump: Any, broken: Any, *, is_moved: bool) -> Any:
    """Where a result jumps, so that all of its gap is an error of the operation; None if it jumps nowhere.

    Args:
        step: the operation.
        gap: how the result differs between both runs.
        flow: the errors of the operands in it; None if there is no derivative.
        error: the whole error of the result.
        jump: where there is no secant, as `_corrected` returns it, or None.
        broken: where decisions differ, as `_broken` returns it.
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


def _corrected(flow: Any, change: Any) -> tuple[Any, Any]:
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


def _broken(step: Step, operands: Sequence[Pair]) -> Any:
    """Where integers or truth values that the operation takes differ between both runs; None if they are the same."""
    changed = [each for each in operands if each.wide is not None and not is_floating(each.narrow)]
    if not changed:
        return None
    differ = [each.narrow != each.wide for each in changed]
    if step.name == "select_n":
        return differ[0]
    return jnp.stack([jnp.any(each) for each in differ]).any()
