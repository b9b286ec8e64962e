"""`supremum attribute`: which line of a program loses its precision."""

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
from supremum.errors import ArgumentError, SupremumError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from supremum.numerics import Attribution

_FORMATS = ("terminal", "json", "html", "svg")


def attribute(
    target: Target,
    script_arguments: ScriptArguments = None,
    args: ArgsOption = None,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The policy that the program runs under, as for autocast; or 'declared' for the dtypes that it "
            "declares.",
        ),
    ] = "mixed_bfloat16",
    result: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Explain only this part of the result, such as 0 or 'params/bias'."),
    ] = None,
    format: Annotated[str | None, format_option(_FORMATS)] = None,  # noqa: A002
    output: Output = None,
) -> None:
    """Find the lines of a JAX program that lose its precision.

    The program is a function, or the jitted functions that a script calls; of each, the first call with arguments of
    some types is looked at. Arrays that --args describes have random values of the standard normal distribution if
    they are floating, and zeros otherwise.
    """
    with loading():  # JAX, which most commands do not need
        from supremum import numerics

    wanted = chosen_format(format, output, _FORMATS)
    numerics.attribute(len, policy, output=result)  # a wrong policy is an error before the program runs

    def attributed(function: Callable[..., Any], *given: Any, **options: Any) -> Attribution:
        return numerics.attribute(function, policy, output=result)(*given, **options)

    check_target(target, args)
    is_printed = output in (None, STANDARD_OUTPUT)
    with printing_to_errors() if is_printed and wanted != "terminal" else nullcontext():
        if args is None:
            found, error = _of_script(target, script_arguments or [], attributed)
        else:
            found, error = _of_function(target, args, attributed)
    put_text(_written(found, wanted), output)
    if error is not None:
        typer.echo(shown_error(error), err=True)
        raise typer.Exit(FAILURE)


def _of_function(
    target: str, args: str, attributed: Callable[..., Attribution]
) -> tuple[dict[str, Attribution], BaseException | None]:
    call, error = call_of(target, args)
    if call is None:
        return {}, error
    found, error = tried(lambda: attributed(call.function, *with_values(call.arguments)))
    if isinstance(error, SupremumError):
        raise error
    return ({} if found is None else {f"{call.name}({args.strip()})": found}), error


def _of_script(
    script: str, arguments: Sequence[str], attributed: Callable[..., Attribution]
) -> tuple[dict[str, Attribution], BaseException | None]:
    from supremum.tracing import JittedCall, watch_jitted

    found: dict[str, Attribution] = {}

    def seen(call: JittedCall) -> None:
        try:
            result = attributed(call.function, *call.args, **call.kwargs)
        except SupremumError as error:
            typer.echo(f"supremum: {call} is left out: {error}", err=True)
            return
        name = str(call)
        found[name if name not in found else f"{name}, program {len(found) + 1}"] = result

    with watch_jitted(seen):
        error = run_script(script, arguments)
    return found, error


def _written(found: dict[str, Attribution], format: str) -> str:  # noqa: A002
    from supremum import numerics

    if format == "json":
        return json_text({"functions": [{"function": name} | each.to_dict() for name, each in found.items()]})
    if format == "html":
        return numerics.attribution_page(found)
    if format == "svg":
        if len(found) != 1:
            raise ArgumentError(f"An SVG shows one function, and this program has {len(found)}; write to a .html file.")
        (only,) = found.values()
        return only.to_svg()
    if not found:
        return "no jitted function was called\n"
    return "\n\n".join(f"{name}: {each}" for name, each in found.items()) + "\n"
