"""`profile`, which runs a function once and counts what formats would do to the values of its operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import jax

from supremum.argument_checks import flag, function, iterable
from supremum.errors import ArgumentError, OperandError
from supremum.formats import Format, Kind, as_format
from supremum.jax_compat import primitives as p
from supremum.jaxprs import traced_call
from supremum.numerics.arguments import check_arguments
from supremum.numerics.instrumented import Slot, evaluate, is_floating, plan_of
from supremum.numerics.report import Profile
from supremum.numerics.tallies import Tally, measure

FORMATS = "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"


def profile(
    fn: Callable[..., Any], formats: Iterable[Any] = FORMATS, *, histogram: bool = True
) -> Callable[..., Profile]:
    """Count what narrower formats would do to the values that a function computes.

    The function is compiled and run once, with counters after each operation that makes floating-point values. Its
    results are those under `jax.jit`, and in float32 usually the same bits; XLA decides what to fuse and round once.

    `jit`, `grad`, `vmap`, `scan`, `while_loop`, `cond`, `checkpoint` and functions with custom derivatives may be used
    inside; their operations have rows of their own. Operations that only move values, such as a transposition, and
    those that the results do not depend on have none. `jax.jit` and `jax.vmap` may be put around the result.

    Args:
        fn: any function of arrays that JAX can trace, jitted or not, without side effects. Modules of Flax nnx are
            updated as by a call. Arguments that are not arrays, such as Python numbers, are passed on as they are.
        formats: the floating-point formats to answer for.
        histogram: whether to count the binary exponents of the values too, for `Profile.to_svg` and the page.

    Returns:
        A function that takes the same arguments and returns a `Profile`.

    Raises:
        OperandError: if `fn` is not a function, for a format that is not real floating, and in a call for arguments
            without an array.
        ArgumentError: in a call, for a function with side effects, without a floating-point result, or with a
            `shard_map`, and for derivatives of the profiled function.

    >>> import jax.numpy as jnp
    >>> def softmax(x):
    ...     e = jnp.exp(x)
    ...     return e / e.sum()
    >>> found = profile(softmax, formats=["float16", "bfloat16"])(
    ...     jnp.array([1.0, 2.0, 12.0])
    ... )
    >>> for row in found.rows:
    ...     print(row.expression, row.primitive, row.values.formats["float16"].overflow)
    e.sum() reduce_sum 1
    jnp.exp(x) exp 1
    e / e.sum() div 0
    """
    function("fn", fn, "jnp.exp")
    rows = _as_formats(formats)
    flag("histogram", histogram)

    @wraps(fn, updated=())
    def profiled(*args: Any, **kwargs: Any) -> Profile:
        return _profile(fn, rows, histogram, args, kwargs)

    return profiled


def _as_formats(formats: Iterable[Any]) -> tuple[Format, ...]:
    rows = dict.fromkeys(as_format(each) for each in iterable("formats", formats, "formats"))
    for row in rows:
        if row.kind is not Kind.FLOAT:
            raise OperandError(f"formats must be real floating formats, got {row}; use formats=['float16']")
    return tuple(rows)


def _profile(
    fn: Callable[..., Any],
    formats: tuple[Format, ...],
    histogram: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Profile:
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs))):
        raise OperandError("profile runs the function, so it needs arrays, got a ShapeDtypeStruct; use jnp.ones")
    check_arguments("profile", fn, args, kwargs)
    call = traced_call(fn, args, kwargs, "profile")
    program = call.program
    if program.effects:
        effects = ", ".join(sorted({str(effect) for effect in program.effects}))
        raise ArgumentError(f"profile needs a function without side effects, got one with {effects}; remove them")
    if not any(map(is_floating, program.out_avals)):
        types = ", ".join(map(str, program.out_avals)) or "no arrays"
        raise ArgumentError(f"profile needs a function with a floating-point result, got one that returns {types}")
    plan = plan_of(program, formats, histogram)
    slots = plan.slots

    @jax.custom_jvp
    def run(constants: tuple[Any, ...], operands: list[Any]) -> tuple[list[Any], list[Tally]]:
        return evaluate(plan.with_constants(constants), operands, _measure)

    @run.defjvp
    def refuse(*_: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        raise ArgumentError("profile cannot be differentiated; profile the derivative: use profile(jax.grad(function))")

    # The flags would stop at the first NaN, which the profile is to count.
    with jax.debug_nans(False), jax.debug_infs(False):
        results, tallies = jax.jit(run)(plan.constants, call.arrays)
    return Profile(call.put_back(results), tallies, slots, formats)


def _measure(value: Any, slot: Slot) -> Tally:
    if slot.site.equation.primitive is p.broadcast_in_dim_p:
        # It has a slot only if it repeats a constant. XLA would fold the count of all copies, slowly.
        return measure(value.ravel()[:1], slot.source, slot.questions, value.size)
    return measure(value, slot.source, slot.questions)
