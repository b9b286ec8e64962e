"""`supremum profile`: what number formats would do to the values of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from supremum.cli.exit_codes import FAILURE, loading
from supremum.cli.measured_programs import measure_program, put_results
from supremum.cli.output import STANDARD_OUTPUT, Output, chosen_format, format_option
from supremum.cli.programs import ArgsOption, ScriptArguments, Target, shown_error

if TYPE_CHECKING:
    from collections.abc import Callable

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
        return numerics.profile(given, **settings, histogram=True)(*args, **kwargs)

    found, error = measure_program(
        target,
        args,
        script_arguments or [],
        profiled,
        hides_output=output in (None, STANDARD_OUTPUT) and wanted != "terminal",
    )
    if scope is not None:
        found = {name: each.matching(scope) for name, each in found.items()}
    put_results(found, wanted, numerics.profile_page, output)
    if error is not None:
        typer.echo(shown_error(error), err=True)
        raise typer.Exit(FAILURE)
