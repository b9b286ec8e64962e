"""`supremum profile`: what number formats would do to the values of a program."""

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

    from supremum.numerics import Profile

_FORMATS = ("terminal", "json", "html", "svg")


def profile(
    target: Target,
    script_arguments: ScriptArguments = None,
    args: ArgsOption = None,
    formats: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="The formats to answer for, separated by commas. Default: float16, bfloat16, "
            "float8_e4m3fn and float8_e5m2.",
        ),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(help="Look only at operations in this jax.named_scope, such as 'encoder/*/norm'."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Compute products as this device would, such as tpu or h100; see numerics.DEVICES."),
    ] = None,
    format: Annotated[str | None, format_option(_FORMATS)] = None,  # noqa: A002
    output: Output = None,
) -> None:
    """Count the values of a JAX program that formats cannot hold.

    The program is a function, or the jitted functions that a script calls; of each, the first call with arguments of
    some types is profiled. Arrays that --args describes have random values of the standard normal distribution if
    they are floating, and zeros otherwise.
    """
    with loading():  # JAX, which most commands do not need
        from supremum import numerics

    wanted = chosen_format(format, output, _FORMATS)
    names = None if formats is None else [each.strip() for each in formats.split(",")]
    if names is not None:
        numerics.profile(len, names)  # an unknown format is an error before the program runs
    if device is not None:
        numerics.on(device, len)
    settings: dict[str, Any] = {} if names is None else {"formats": names}

    def profiled(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Profile:
        given = function if device is None else numerics.on(device, function)
        return numerics.profile(given, **settings)(*args, **kwargs)

    check_target(target, args)
    is_printed = output in (None, STANDARD_OUTPUT)
    with printing_to_errors() if is_printed and wanted != "terminal" else nullcontext():
        if args is None:
            found, error = _of_script(target, script_arguments or [], profiled)
        else:
            found, error = _of_function(target, args, profiled)
    if scope is not None:
        found = {name: each.matching(scope) for name, each in found.items()}
    put_text(_written(found, wanted), output)
    if error is not None:
        typer.echo(shown_error(error), err=True)
        raise typer.Exit(FAILURE)


def _of_function(
    target: str, args: str, profiled: Callable[..., Profile]
) -> tuple[dict[str, Profile], BaseException | None]:
    call, error = call_of(target, args)
    if call is None:
        return {}, error
    found, error = tried(lambda: profiled(call.function, *with_values(call.arguments)))
    if isinstance(error, SupremumError):
        raise error
    return ({} if found is None else {f"{call.name}({args.strip()})": found}), error


def _of_script(
    script: str, arguments: Sequence[str], profiled: Callable[..., Profile]
) -> tuple[dict[str, Profile], BaseException | None]:
    from supremum.tracing import JittedCall, watch_jitted

    found: dict[str, Profile] = {}

    def seen(call: JittedCall) -> None:
        try:
            result = profiled(call.function, *call.args, **call.kwargs)
        except SupremumError as error:
            typer.echo(f"supremum: {call} is left out: {error}", err=True)
            return
        name = str(call)
        found[name if name not in found else f"{name}, program {len(found) + 1}"] = result

    with watch_jitted(seen):
        error = run_script(script, arguments)
    return found, error


def _written(found: dict[str, Profile], format: str) -> str:  # noqa: A002
    from supremum.numerics import profile_page

    if format == "json":
        return json_text({"functions": [{"function": name} | each.to_dict() for name, each in found.items()]})
    if format == "html":
        return profile_page(found)
    if format == "svg":
        if len(found) != 1:
            raise ArgumentError(f"An SVG shows one function, and this program has {len(found)}; write to a .html file.")
        (profiled,) = found.values()
        return profiled.to_svg()
    if not found:
        return "no jitted function was called\n"
    return "\n\n".join(f"{name}: {each}" for name, each in found.items()) + "\n"
