"""`profile`, which runs a function once and counts what formats would do to the values of its operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import jax

from supremum.argument_checks import flag, function, iterable
from supremum.errors import OperandError
from supremum.formats import Format, Kind, as_format
from supremum.jaxprs import TracedCall
from supremum.numerics.calls import trace_to_run
from supremum.numerics.counting_program import CountingProgram
from supremum.numerics.kept_programs import KeptPrograms
from supremum.numerics.plans import measured_plan, steps_with_values
from supremum.numerics.report import Profile
from supremum.numerics.tallied_results import slots_of
from supremum.typing import DTypeLike

FORMATS = "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"


def profile(
    fn: Callable[..., Any], formats: Iterable[DTypeLike] = FORMATS, *, histogram: bool = False
) -> Callable[..., Profile]:
    """Count what narrower formats would do to the values that a function computes.

    The function is compiled and run once, as a program that also returns the values of each operation. XLA fuses it
    differently, so that results may differ from those of `jax.jit` as sums in another order do. Loops and branches run
    twice: the second run is counted, and the results are those of the first.

    `jit`, `grad`, `vmap`, `scan`, `while_loop`, `cond`, `checkpoint` and functions with custom derivatives may be used
    inside; their operations have rows of their own. Operations that only move values, such as a transposition, and
    those that the results do not depend on have none. `jax.jit`, `jax.vmap` and `jax.shard_map` may be put around the
    result. If `fn` is jitted, later calls with arguments of the same kind compile nothing, and take two to three steps.

    Args:
        fn: any function of arrays that JAX can trace, jitted or not, without side effects. Modules of Flax nnx are
            updated as by a call. Arguments that are not arrays, such as Python numbers, are passed on as they are.
        formats: the floating-point formats to answer for.
        histogram: whether to count the binary exponents of the values too, for `Profile.to_svg` and `profile_page`.
            A run takes about twice as long as without.

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
    >>> report = profile(softmax, formats=["float16", "bfloat16"])(
    ...     jnp.array([1.0, 2.0, 12.0])
    ... )
    >>> for row in report.rows:
    ...     print(row.expression, row.primitive, row.values.formats["float16"].overflow)
    e.sum() reduce_sum 1
    jnp.exp(x) exp 1
    e / e.sum() div 0
    """
    function("fn", fn, "jnp.exp")
    rows = as_formats(formats)
    flag("histogram", histogram)

    def prepare(call: TracedCall) -> CountingProgram:
        plan = measured_plan(call.program, "profile")
        return CountingProgram(plan, slots_of(steps_with_values(plan, "profile"), rows, histogram), "profile")

    programs = KeptPrograms(prepare)

    @wraps(fn, updated=())
    def count(*args: Any, **kwargs: Any) -> Profile:
        call = trace_to_run(fn, args, kwargs, "profile")
        program = programs.of(call)
        # The flags would stop at the first NaN, which the profile is to count.
        with jax.debug_nans(False), jax.debug_infs(False):
            results, tallies = program.run(call.arrays)
        return Profile(call.put_back(results), tallies, program.slots, rows)

    return count


def as_formats(formats: Iterable[DTypeLike]) -> tuple[Format, ...]:
    """Convert the argument `formats` to rows, each once.

    Raises:
        OperandError: for a format that is not real floating; a `TypeError`.
    """
    rows = dict.fromkeys(as_format(each) for each in iterable("formats", formats, "formats"))
    for row in rows:
        if row.kind is not Kind.FLOAT:
            raise OperandError(f"formats must be real floating formats, got {row}; use formats=['float16']")
    return tuple(rows)
