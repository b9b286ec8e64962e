"""`attribute`, which finds the operations that the error of a function comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, TypeAlias

from supremum.argument_checks import function
from supremum.errors import ArgumentError
from supremum.formats import DType
from supremum.jaxprs import Plan, Step, TracedCall
from supremum.mixed_precision import Policy, PolicyMap, as_settings, autocasted
from supremum.numerics.attributing import ErrorPrograms, Output, checked_output, selection, trace_untransformed
from supremum.numerics.attribution_report import DECLARED, Attribution, Change
from supremum.numerics.dataflow import Dataflow
from supremum.numerics.diagnosis import AMPLIFYING, Diagnosis, Effect, diagnose
from supremum.numerics.error_tallies import has_row
from supremum.numerics.kept_programs import KeptPrograms
from supremum.numerics.plain_runs import Chosen
from supremum.numerics.plans import measured_plan
from supremum.numerics.widening import FLOAT32, FLOAT64, floating_avals
from supremum.typing import DTypeLike

_TRIED = 3
"""How many changes are tried at most."""


def attribute(
    fn: Callable[..., Any],
    policy: Policy | PolicyMap | DTypeLike = "mixed_bfloat16",
    *,
    output: Output = None,
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
    `jax.grad` does. If `fn` is jitted, later calls with arguments of the same kind compile nothing.

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
    >>> report = attribute(variance, "declared")(x)
    >>> report.rows[0].expression, report.rows[0].effect
    ('mean_of_squares - mean * mean', 'cancellation')
    """
    function("fn", fn, "jnp.exp")
    settings = None if isinstance(policy, str) and policy == DECLARED else as_settings(policy, ops, True)
    if settings is None and ops is not None:
        raise ArgumentError("ops changes what autocast decides, and policy='declared' uses no autocast; leave out ops")
    checked_output(output)

    def prepare(call: TracedCall) -> ErrorPrograms:
        select = selection(call, output, "attribute")
        program = call.program if settings is None else autocasted(call.program, settings)
        return ErrorPrograms(measured_plan(program, "attribute"), select)

    kept = KeptPrograms(prepare)

    @wraps(fn, updated=())
    def explain(*args: Any, **kwargs: Any) -> Attribution:
        call = trace_untransformed(fn, args, kwargs, "attribute")
        programs = kept.of(call)
        run, flow = programs.find_shares(call.arrays), Dataflow(programs.plan)
        diagnoses = diagnose(programs.plan, run, flow)
        measure = partial(programs.measure_change, call.arrays, run.reference)
        change = _best_change(programs.plan, measure, run.error, diagnoses, flow)
        outputs = call.put_back(run.outputs)
        name = DECLARED if settings is None else str(settings.policy)
        return Attribution(outputs, name, run, diagnoses, change)

    return explain


_Measure: TypeAlias = Callable[[Mapping[int, Chosen]], float]
"""Measures the error of the result with some operations in another dtype, by the number of the step."""


def _best_change(
    plan: Plan, measure: _Measure, error: float, diagnoses: list[Diagnosis], flow: Dataflow
) -> Change | None:
    """Try changes, and put the diagnosis first whose change helps most."""
    if error == 0:
        return None
    best: tuple[Diagnosis, Change] | None = None
    for each in diagnoses[:_TRIED]:
        if each.blame == 0:
            break
        change = _try_change(plan, measure, each, flow)
        if best is None or _is_better(change.error, best[1].error):
            best = each, change
        if each.effect is Effect.OVERFLOW or _is_better(change.error, error):
            break
    if best is None:
        return None
    diagnosis, change = best
    diagnoses.remove(diagnosis)
    diagnoses.insert(0, diagnosis)
    return change


def _is_better(error: float, than: float) -> bool:
    """Whether an error is at most half of another, or finite where that is not."""
    if not math.isfinite(than):
        return math.isfinite(error)
    return abs(error) * 2 <= abs(than)


def _try_change(plan: Plan, measure: _Measure, diagnosis: Diagnosis, flow: Dataflow) -> Change:
    """Run the program with a step in a wider dtype; one that amplifies errors also needs operands without them."""
    step = diagnosis.step
    chosen = flow.feeding(step) if diagnosis.effect in AMPLIFYING else {step.number}
    chosen |= {each.number for inner in step.inner for each in inner.every_step()}
    wide = FLOAT32 if diagnosis.dtype.itemsize < FLOAT32.itemsize else FLOAT64
    error = measure(dict.fromkeys(chosen, wide))
    follows = diagnosis.effect is Effect.OVERFLOW and not math.isfinite(error)
    if follows:  # what is computed from large numbers may overflow too
        chosen |= {each.number for each in plan.every_step() if each.number > step.number}
        error = measure(dict.fromkeys(chosen, wide))
    others = [each for each in plan.every_step() if each.number in chosen - {step.number}]
    narrower = [each for each in others if has_row(each) and not each.inner and _is_narrower(each, wide)]
    return Change(str(wide), len(narrower), error, follows)


def _is_narrower(step: Step, dtype: DType) -> bool:
    """Whether a step has a floating result in a smaller dtype."""
    return any(aval.dtype.itemsize < dtype.itemsize for aval in floating_avals(step.equation.outvars))
