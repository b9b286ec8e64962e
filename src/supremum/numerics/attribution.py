"""`attribute`, which tells which operations the error of a function comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from supremum.argument_checks import function
from supremum.errors import ArgumentError
from supremum.formats import DType, as_format
from supremum.jaxprs import Plan, Step, aval_of
from supremum.mixed_precision import as_settings, autocasted
from supremum.numerics.attributing import (
    Found,
    Selected,
    checked_output,
    find,
    measure_change,
    selection,
    traced_run,
)
from supremum.numerics.attribution_report import DECLARED, Attribution, Change
from supremum.numerics.dataflow import Dataflow
from supremum.numerics.diagnosis import Digits, Effect, digits_of, relative_errors
from supremum.numerics.error_tallies import has_row
from supremum.numerics.plans import measured_plan
from supremum.numerics.widening import FLOAT32, FLOAT64, is_floating

_TRIED = 3
"""How many changes are tried at most."""


def attribute(
    fn: Callable[..., Any],
    policy: Any = "mixed_bfloat16",
    *,
    output: Any = None,
    ops: Mapping[str, Any] | str | None = None,
) -> Callable[..., Attribution]:
    """Find the operations that the error of a function comes from.

    The function runs twice, once in the dtypes that `autocast` chooses and once in float64, and the difference is what
    there is to explain. Each operation's own error is the operation in its dtype less the operation in float64, both
    on the operands of the narrow run. Its share of the error is the inner product of that with the derivative of the
    result with respect to the operation's value, at the midpoint of both runs. The operation that is most to blame is
    then computed in float32, and the error measured again.

    `jit`, `grad`, `vmap`, `scan`, `cond`, `checkpoint` and functions with custom derivatives may be used inside; their
    operations have rows of their own. A `while_loop` has no derivative backwards: the operations inside have their own
    errors only, and the loop is one row with the error measured at its end. Scans keep what their derivative needs, as
    `jax.grad` does.

    Args:
        fn: any function of arrays that JAX can trace, jitted or not, without side effects. Modules of Flax nnx are
            updated as by a call. Arguments that are not arrays, such as Python numbers, are passed on as they are.
        policy: as for `autocast`; or `"declared"` for the dtypes that the function declares, for functions that run in
            narrow dtypes already.
        output: what to explain if the function returns more than one number: an index of the result, a path such as
            `"params/bias"`, or a function of the result, which is computed in float64. By default all floating-point
            results together.
        ops: as for `autocast`.

    Returns:
        A function that takes the same arguments and returns an `Attribution`. For one number it explains the error; for
        several it explains the norm of the error, relative to that of the reference.

    Raises:
        OperandError: if `fn` is not a function, and in a call for arguments without an array.
        ArgumentError: for a policy that `autocast` refuses, and in a call for a function with side effects, without a
            floating-point result, or with a `shard_map`.
        UnknownNameError: in a call for an output that the result does not have.

    The method is that of CHEF-FP (error estimates by automatic differentiation), with the local errors on the operands
    of the narrow run and the derivative at the midpoint.

    >>> import jax.numpy as jnp
    >>> def variance(x):
    ...     mean_of_squares, mean = jnp.mean(x * x), jnp.mean(x)
    ...     return mean_of_squares - mean * mean
    >>> x = jnp.linspace(30, 34, 100, dtype="bfloat16")
    >>> found = attribute(variance, "declared")(x)
    >>> found.rows[0].expression, found.rows[0].effect
    ('mean_of_squares - mean * mean', 'cancellation')
    """
    function("fn", fn, "jnp.exp")
    settings = None if isinstance(policy, str) and policy == DECLARED else as_settings(policy, ops, True)
    if settings is None and ops is not None:
        raise ArgumentError("ops changes what autocast decides, and policy='declared' uses no autocast; leave out ops")
    checked_output(output)

    @wraps(fn, updated=())
    def attributed(*args: Any, **kwargs: Any) -> Attribution:
        call = traced_run(fn, args, kwargs, "attribute")
        select = selection(call, output, "attribute")
        program = call.program if settings is None else autocasted(call.program, settings)
        plan = measured_plan(program, "attribute")
        found = find(plan, call.arrays, select)
        steps, digits = _judged(plan, found)
        change = _best_change(plan, call.arrays, select, found, steps, digits)
        outputs = call.put_back(found.outputs)
        name = DECLARED if settings is None else str(settings.policy)
        return Attribution(outputs, name, found, steps, digits, change)

    return attributed


def _judged(plan: Plan, found: Found) -> tuple[list[Step], dict[int, Digits]]:
    """The steps with errors of their own, those that are most to blame first, and what they do to the digits."""
    flow, errors = Dataflow(plan), relative_errors(found)
    steps = [step for step in plan.every_step() if has_row(step) and step.number in found.facts]
    digits = {step.number: digits_of(step, found, errors, flow) for step in steps}
    # The sort is stable: the first of several overflows in a row comes first.
    return sorted(steps, key=lambda step: digits[step.number].blame, reverse=True), digits


def _best_change(
    plan: Plan, arrays: Any, select: Selected, found: Found, steps: list[Step], digits: Mapping[int, Digits]
) -> Change | None:
    """Try changes, and put the step first whose change helps most."""
    if found.measured.error == 0 or not steps or digits[steps[0].number].blame == 0:
        return None
    flow = Dataflow(plan)
    tried: list[tuple[Step, Change]] = []
    for step in steps[:_TRIED]:
        if digits[step.number].blame == 0:
            break
        change = _tried(plan, arrays, select, found, step, digits[step.number], flow)
        tried.append((step, change))
        if digits[step.number].effect is Effect.OVERFLOW or _is_better(change.error, found.measured.error, 2.0):
            break
    best, change = tried[0]
    for step, other in tried[1:]:
        if _is_better(other.error, change.error, 2.0):
            best, change = step, other
    steps.remove(best)
    steps.insert(0, best)
    return change


def _is_better(error: float, than: float, factor: float) -> bool:
    if not math.isfinite(than):
        return math.isfinite(error)
    return abs(error) * factor <= abs(than)


def _tried(
    plan: Plan, arrays: Any, select: Selected, found: Found, step: Step, digits: Digits, flow: Dataflow
) -> Change:
    """Run the program with a step in a wider dtype; one that amplifies errors also needs operands without them."""
    amplifies = digits.effect in (Effect.CANCELLATION, Effect.AMPLIFICATION)
    chosen = flow.feeding(step) if amplifies else {step.number}
    chosen |= {each.number for inner in step.inner for each in inner.every_step()}
    wide = FLOAT32 if as_format(digits.dtype).bits < as_format(FLOAT32).bits else FLOAT64

    def choose(each: Step) -> Any:
        return wide if each.number in chosen else None

    measured = measure_change(plan, arrays, select, found.reference, choose)
    follows = digits.effect is Effect.OVERFLOW and not math.isfinite(measured.error)
    if follows:  # what is computed from large numbers may overflow too
        chosen |= {each.number for each in plan.every_step() if each.number > step.number}
        measured = measure_change(plan, arrays, select, found.reference, choose)
    rounding = [
        each
        for each in plan.every_step()
        if each.number in chosen - {step.number} and has_row(each) and not each.inner and _is_narrower(each, wide)
    ]
    return Change(str(wide), len(rounding), measured.error, follows)


def _is_narrower(step: Step, dtype: DType) -> bool:
    """Whether a step has a floating result in a smaller dtype."""
    avals = [aval_of(var) for var in step.equation.outvars]
    return any(is_floating(aval) and aval.dtype.itemsize < dtype.itemsize for aval in avals)
