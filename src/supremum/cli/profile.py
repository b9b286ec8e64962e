"""`supremum profile`: what number formats would do to the values of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from supremum.argument_checks import chosen
from supremum.cli.exit_codes import loading
from supremum.cli.measured_programs import report_program
from supremum.cli.output import Output, chosen_format, format_option
from supremum.cli.programs import ArgsOption, ScriptArguments, Target

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

    form = chosen_format(format, output, _FORMATS)
    # An unknown format or device is an error before the program runs.
    settings: dict[str, Any] = {"histogram": True}
    if formats is not None:
        settings["formats"] = numerics.as_formats(name.strip() for name in formats.split(","))
    if device is not None:
        chosen("device", device, numerics.DEVICES)

    def tool(function: Callable[..., Any]) -> Callable[..., Any]:
        measure = numerics.profile(function if device is None else numerics.on(device, function), **settings)

        def in_scope(*arguments: Any, **options: Any) -> numerics.Profile:
            profile = measure(*arguments, **options)
            return profile if scope is None else profile.matching(scope)

        return in_scope

    report_program(target, args, script_arguments, tool, numerics.profile_page, form, output)
