"""`supremum nans`: where the NaNs and infinities of a program come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from supremum.cli.exit_codes import FAILURE, loading
from supremum.cli.measured_programs import report_program
from supremum.cli.output import Output, chosen_format, format_option
from supremum.cli.programs import ArgsOption, ScriptArguments, Target

if TYPE_CHECKING:
    from supremum.numerics import NonfiniteOrigins
    from supremum.tracing import JittedCall

_FORMATS = ("terminal", "json", "html")


def nans(
    target: Target,
    script_arguments: ScriptArguments = None,
    args: ArgsOption = None,
    allow: Annotated[
        bool, typer.Option("--allow", help="Exit with 0 even if a NaN or an infinity reaches a result.")
    ] = False,
    format: Annotated[str | None, format_option(_FORMATS)] = None,  # noqa: A002
    output: Output = None,
) -> None:
    """Find where the NaNs and infinities of a JAX program come from.

    The program is a function, or the jitted functions that a script calls; of each, the first call with arguments of
    some types is looked into, and later calls only if that one is finite. Arrays that --args describes have random
    values of the standard normal distribution if they are floating, and zeros otherwise. The exit code is 1 if a NaN
    or an infinity reaches a result.
    """
    with loading():  # JAX, which most commands do not need
        from supremum import numerics

    form = chosen_format(format, output, _FORMATS)

    def is_next(call: JittedCall, last: NonfiniteOrigins) -> bool:
        return not any(last.bad_outputs) and not _is_finite(call)

    tool, page = numerics.first_nonfinite, numerics.nonfinite_page
    results = report_program(target, args, script_arguments, tool, page, form, output, again=is_next)
    bad = [name for name, each in results.items() if any(each.bad_outputs)]
    if bad and not allow:
        typer.echo(f"supremum: the result is not finite: {', '.join(bad)}", err=True)
        raise typer.Exit(FAILURE)


def _is_finite(call: JittedCall) -> bool:
    """Run a call once more, on copies, because it may delete its arguments."""
    import jax
    import jax.numpy as jnp

    def copied(leaf: Any) -> Any:
        return leaf.copy() if isinstance(leaf, jax.Array) else leaf

    args, kwargs = jax.tree.map(copied, (call.args, dict(call.kwargs)))
    leaves = jax.tree.leaves(call.function(*args, **kwargs))
    return all(bool(jnp.isfinite(leaf).all()) for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact))
