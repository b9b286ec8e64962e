"""`promotion_costs`, which measures what a program would lose if its promotions were undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from supremum.argument_checks import function
from supremum.formats import as_format
from supremum.jaxprs import TracedCall
from supremum.numerics.attributing import ErrorPrograms, Output, checked_output, selection, trace_untransformed
from supremum.numerics.kept_programs import KeptPrograms
from supremum.numerics.plain_runs import RoundedTo
from supremum.numerics.plans import measured_plan
from supremum.numerics.widening import component
from supremum.tracing import Cast, CastReport, ErrorChange, find_widened

_NAME = "promotion_costs"


def promotion_costs(fn: Callable[..., Any], *, output: Output = None) -> Callable[..., CastReport]:
    """Find the promotions of a function, the bytes that each costs, and the error that the narrower dtype would cost.

    `tracing.casts` with `cost=True` finds the promotions that widened first, and the values that are wider because of
    each. Here the function also runs: once in float64, once as it is, and twice for each of these promotions with it
    undone: the operands and results of each operation whose result is wider because of it are rounded to the narrower
    dtype, and then only those of the expression that promotes. All other operations run in the dtypes that they
    declare.

    Each operation rounds once: its sums and products are accumulated in the dtype that it declares. The backward pass
    of a gradient takes the rounded values of the forward pass, but keeps its own dtypes.

    Args:
        fn: any function of arrays that JAX can trace, jitted or not, without side effects. Arguments that are not
            arrays, such as Python numbers, are passed on as they are.
        output: which part of the result to measure: an index, a path such as `"params/bias"`, or a function of the
            result, which is computed in float64. By default all floating-point results together.

    Returns:
        A function that takes the same arguments and returns a `CastReport` whose promotions that widened first have
        `extra_bytes` and `narrow_error`: the relative errors of the result as it is, and with the promotion undone. For
        several numbers it is the norm of the error, relative to that of the result in float64. Promotions of integers
        have no `narrow_error`.

    Raises:
        OperandError: if `fn` is not a function, and in a call for arguments without an array.
        ArgumentError: in a call for a function with side effects, without a floating-point result, or with a
            `shard_map`.
        UnknownNameError: in a call for an output that the result does not have.

    >>> import jax.numpy as jnp
    >>> def normalized(x, scale):
    ...     return x * scale
    >>> x, scale = jnp.ones(1000, "bfloat16"), jnp.full(1000, 1.001, "float32")
    >>> report = promotion_costs(normalized)(x, scale)
    >>> (cause,) = report.causes
    >>> cause.first.expression, cause.extra_bytes, round(cause.narrow_error.after, 6)
    ('x * scale', 4000, 0.000999)
    """
    function("fn", fn, "jnp.exp")
    checked_output(output)

    kept = KeptPrograms(lambda call: ErrorPrograms(measured_plan(call.program, _NAME), selection(call, output, _NAME)))

    @wraps(fn, updated=())
    def costs(*args: Any, **kwargs: Any) -> CastReport:
        call = trace_untransformed(fn, args, kwargs, _NAME)
        return _costs_of(call, kept.of(call))

    return costs


def _costs_of(call: TracedCall, programs: ErrorPrograms) -> CastReport:
    values = find_widened(call.program, cost=True)
    causes = [cause for cause in values.report.causes if all(map(_widens_floats, cause.casts))]
    if not causes:
        return values.report
    reference = programs.find_reference(call.arrays)

    def measure(rounded: Mapping[int, RoundedTo]) -> float:
        return reference.relative(programs.measure_change(call.arrays, reference, rounded))

    as_is = measure({})
    errors: dict[int, ErrorChange] = {}
    for cause in causes:
        roots = set(map(id, cause.casts))
        # The steps of a plan are numbered as `walk` visits them.
        rounded = {
            number: RoundedTo(component(cast.source)) for number, cast in values.widened.items() if id(cast) in roots
        }
        first = {number: each for number, each in rounded.items() if number in values.first}
        errors |= dict.fromkeys(roots, ErrorChange(as_is, measure(first), measure(rounded)))
    return values.with_errors(errors)


def _widens_floats(cast: Cast) -> bool:
    """Whether a cast widens numbers that are floating-point, real or complex, before and after it."""
    source, target = as_format(cast.source), as_format(cast.target)
    return cast.widening and source.is_inexact and source.category == target.category
