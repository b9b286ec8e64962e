"""`supremum attribute`: which line of a program loses its precision."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from supremum.cli.exit_codes import loading
from supremum.cli.measured_programs import report_program
from supremum.cli.output import Output, chosen_format, format_option
from supremum.cli.programs import ArgsOption, ScriptArguments, Target

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
        from supremum.mixed_precision import as_settings

    form = chosen_format(format, output, _FORMATS)
    if policy != "declared":
        as_settings(policy, None, True)  # a wrong policy is an error before the program runs
    tool = partial(numerics.attribute, policy=policy, output=result)
    report_program(target, args, script_arguments, tool, numerics.attribution_page, form, output)
