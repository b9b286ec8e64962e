"""`supremum nans`: where the NaNs and infinities of a program are born."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supremum.cli.exit_codes import FAILURE, loading
from supremum.cli.output import STANDARD_OUTPUT, Output, chosen_format, format_option, json_text, put_text
from supremum.cli.programs import (
    ArgsOption,
    ScriptArguments,
    Target,
    call_of,
    check_target,
    printing_to_errors,
    run_script,
    shown_error,
    tried,
    with_values,
)
from supremum.errors import SupremumError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from supremum.numerics import Births
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
    """Find where the NaNs and infinities of a JAX program are born.

    The program is a function, or the jitted functions that a script calls; of each, the first call with arguments of
    some types is looked into, and later calls only if that one is finite. Arrays that --args describes have random
    values of the standard normal distribution if they are floating, and zeros otherwise. The exit code is 1 if a NaN
    or an infinity reaches a result.
    """
    with loading():  # JAX, which most commands do not need
        from supremum import numerics

    wanted = chosen_format(format, output, _FORMATS)
    check_target(target, args)
    is_printed = output in (None, STANDARD_OUTPUT)
    with printing_to_errors() if is_printed and wanted != "terminal" else nullcontext():
        found, error = _of_script(target, script_arguments or []) if args is None else _of_function(target, args)
    if wanted == "json":
        written = json_text({"functions": [{"function": name} | each.to_dict() for name, each in found.items()]})
    elif wanted == "html":
        written = numerics.births_page(found)
    elif found:
        written = "\n\n".join(f"{name}: {each}" for name, each in found.items()) + "\n"
    else:
        written = "no jitted function was called\n"
    put_text(written, output)
    bad = [name for name, each in found.items() if any(each.bad_outputs)]
    if error is not None:
        typer.echo(shown_error(error), err=True)
    elif bad and not allow:
        typer.echo(f"supremum: the result is not finite: {', '.join(bad)}", err=True)
    else:
        return
    raise typer.Exit(FAILURE)


def _of_function(target: str, args: str) -> tuple[dict[str, Births], BaseException | None]:
    from supremum.numerics import first_nonfinite

    call, error = call_of(target, args)
    if call is None:
        return {}, error
    found, error = tried(lambda: first_nonfinite(call.function)(*with_values(call.arguments)))
    if isinstance(error, SupremumError):
        raise error
    return ({} if found is None else {f"{call.name}({args.strip()})": found}), error


def _of_script(script: str, arguments: Sequence[str]) -> tuple[dict[str, Births], BaseException | None]:
    from supremum.numerics import first_nonfinite
    from supremum.tracing import watch_jitted

    found: dict[str, Births] = {}
    names: dict[int, str] = {}

    def seen(call: JittedCall) -> None:
        is_new = id(call.program) not in names
        if is_new:
            name = str(call)
            names[id(call.program)] = name if name not in names.values() else f"{name}, program {len(names) + 1}"
        name = names[id(call.program)]
        known = found.get(name)
        if is_new or (known is not None and not any(known.bad_outputs) and not _is_finite(call)):
            try:
                found[name] = first_nonfinite(call.function)(*call.args, **call.kwargs)
            except SupremumError as error:
                typer.echo(f"supremum: {call} is left out: {error}", err=True)

    with watch_jitted(seen, every=True):
        error = run_script(script, arguments)
    return found, error


def _is_finite(call: JittedCall) -> bool:
    """Run a call once more, on copies, because it may delete its arguments."""
    import jax
    import jax.numpy as jnp

    def copied(leaf: Any) -> Any:
        return leaf.copy() if isinstance(leaf, jax.Array) else leaf

    args, kwargs = jax.tree.map(copied, (call.args, dict(call.kwargs)))
    leaves = jax.tree.leaves(call.function(*args, **kwargs))
    return all(bool(jnp.isfinite(leaf).all()) for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact))
