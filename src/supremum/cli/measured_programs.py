"""Measure the functions of a program, and write the results as text, JSON, page or picture, for several commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import typer

from supremum.cli.exit_codes import FAILURE
from supremum.cli.output import json_text, put_text
from supremum.cli.programs import call_of, program_output, run_script, shown_error, tried, with_values
from supremum.errors import ArgumentError, SupremumError, printable, shortened

if TYPE_CHECKING:
    from supremum.tracing import JittedCall

Tool: TypeAlias = "Callable[[Callable[..., Any]], Callable[..., Any]]"
"""Takes a function, and returns a function of the same arguments that returns a report on it."""


NOTHING = "no call of a jitted function was measured"
"""What is said of a program without reports: it may call none, or only some that raise while they are traced."""


@dataclass(frozen=True, slots=True)
class MeasuredProgram:
    """The report on a function of a program.

    Args:
        title: the function with the types of its arguments; a second program of the same title has its number too.
        name: the name of the function.
        arguments: the types of its arguments, or their description.
        report: the report.
    """

    title: str
    name: str
    arguments: tuple[str, ...]
    report: Any


def measure_program(
    target: str,
    args: str | None,
    script_arguments: Sequence[str] | None,
    tool: Tool,
    *,
    runs: bool = True,
    again: Callable[[JittedCall, Any], bool] | None = None,
    instead: Callable[[JittedCall], Any] | None = None,
) -> tuple[list[MeasuredProgram], BaseException | None]:
    """Measure a function, or the jitted functions that a script calls, each at its first call with arguments of a type.

    Args:
        target: a script, or `module:function`.
        args: the description of the function's arguments; None for a script.
        script_arguments: the arguments of the script.
        tool: measures a function.
        runs: whether the tool runs the function, so that arrays that `args` describes need values.
        again: returns for later calls of a program, and its last report, whether to measure that call too; None for
            never.
        instead: makes the report on a call of a script that cannot be measured; None to leave the call out.

    Returns:
        The reports, and the error that the user's program raised.

    Raises:
        ArgumentError: for a function without `args`.
        SupremumError: if a function cannot be measured. For a call in a script, a message says so.
    """
    if args is not None:
        return _measure_function(target, args, tool, runs=runs)
    if ":" in target and not target.endswith(".py"):
        raise ArgumentError(f"The function {shortened(target)} needs --args, such as --args 'f32[8,128], bf16[128]'.")
    from supremum.tracing import watch_jitted

    measurements: dict[str, MeasuredProgram] = {}
    titles: dict[int, str] = {}

    def measure_call(call: JittedCall) -> None:
        is_new = id(call.program) not in titles
        if is_new:
            title = str(call)
            titles[id(call.program)] = title if title not in titles.values() else f"{title}, program {len(titles) + 1}"
        title = titles[id(call.program)]
        is_next = again is not None and title in measurements and again(call, measurements[title].report)
        if not is_new and not is_next:
            return
        try:
            report = tool(call.function)(*call.args, **call.kwargs)
        except SupremumError as error:
            what = f"{call} is" if instead is None else f"the errors of {call} are"
            typer.echo(f"supremum: {printable(what)} left out: {error}", err=True)
            if instead is None:
                return
            report = instead(call)
        measurements[title] = MeasuredProgram(title, call.name, call.types, report)

    with watch_jitted(measure_call, every=again is not None):
        error = run_script(target, script_arguments or ())
    return list(measurements.values()), error


def _measure_function(
    target: str, args: str, tool: Tool, *, runs: bool
) -> tuple[list[MeasuredProgram], BaseException | None]:
    call, error = call_of(target, args)
    if call is None:
        return [], error
    function, arguments = call
    report, error = tried(lambda: tool(function)(*(with_values(arguments) if runs else arguments)))
    if isinstance(error, SupremumError):
        raise error
    name, described = target.partition(":")[2], args.strip()
    return [MeasuredProgram(f"{name}({described})", name, (described,), report)] if error is None else [], error


def report_program(
    target: str,
    args: str | None,
    script_arguments: Sequence[str] | None,
    tool: Tool,
    page: Callable[[Mapping[str, Any]], str],
    form: str,
    output: Path | None,
    *,
    again: Callable[[JittedCall, Any], bool] | None = None,
) -> dict[str, Any]:
    """Measure a program, and print or write the reports.

    Args:
        target: as for `measure_program`, as are the next three.
        args: the description of the function's arguments.
        script_arguments: the arguments of the script.
        tool: measures a function.
        page: makes the HTML page of the reports.
        form: the format of the output: `"terminal"`, `"json"`, `"html"` or `"svg"`.
        output: the file; None for standard output.
        again: as for `measure_program`.

    Returns:
        The reports by the title of the call.

    Raises:
        ArgumentError: for a function without `args`, and for an SVG of several reports or none.
        SupremumError: if a function cannot be measured.
        typer.Exit: if the user's program raises an error, which is printed.
    """
    with program_output(form, output):
        measurements, error = measure_program(target, args, script_arguments, tool, again=again)
    reports = {each.title: each.report for each in measurements}
    writers = {"terminal": reports_text, "json": _reports_json, "html": page, "svg": _only_svg}
    put_text(writers[form](reports), output)
    if error is not None:
        typer.echo(shown_error(error), err=True)
        raise typer.Exit(FAILURE)
    return reports


def reports_text(reports: Mapping[str, Any]) -> str:
    """The reports as text, each with its title."""
    if not reports:
        return f"{NOTHING}\n"
    return "\n\n".join(f"{title}: {each}" for title, each in reports.items()) + "\n"


def _reports_json(reports: Mapping[str, Any]) -> str:
    return json_text({"functions": [{"function": title} | each.to_dict() for title, each in reports.items()]})


def _only_svg(reports: Mapping[str, Any]) -> str:
    if len(reports) != 1:
        raise ArgumentError(f"An SVG shows one function, and this program has {len(reports)}; write to a .html file.")
    (only,) = reports.values()
    return only.to_svg()
