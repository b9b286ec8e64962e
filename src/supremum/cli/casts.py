"""`supremum casts`: every cast of a program, and what caused it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from supremum.argument_checks import chosen
from supremum.cli.exit_codes import FAILURE, loading
from supremum.cli.measured_programs import NOTHING, MeasuredProgram, Tool, measure_program, reports_text
from supremum.cli.output import (
    STANDARD_OUTPUT,
    Output,
    checked_output,
    chosen_format,
    format_option,
    json_text,
    put_text,
)
from supremum.cli.programs import ArgsOption, ScriptArguments, Target, program_output, shown_error
from supremum.errors import ArgumentError, printable, shortened

if TYPE_CHECKING:
    from supremum.tracing import Baseline, Cast, CastReport, Forbidden, JittedCall

_FORMATS = ("terminal", "json", "html", "github")


def casts(
    target: Target,
    script_arguments: ScriptArguments = None,
    args: ArgsOption = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--class", help="Look only at casts of this class; repeat for several.")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--path", help="Look only at casts in files that match, such as '*/model.py'; repeat for several."
        ),
    ] = None,
    libraries: Annotated[
        list[str] | None,
        typer.Option(
            "--library", help="Look only at casts in lines of this package, such as flax; repeat for several."
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None, typer.Option(help="A class of casts to fail on, with exit code 1; repeat for several.")
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option(help="With --fail-on: a rule set or a file pattern; repeat for several.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Fail only on casts that this file does not have; on promotions by default.")
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option(callback=checked_output, help="Write the casts of today to this file.")
    ] = None,
    cost: Annotated[
        bool,
        typer.Option(
            "--cost",
            help="Also run the program, and measure the bytes that each promotion costs, and the error of the result "
            "without it.",
        ),
    ] = False,
    format: Annotated[str | None, format_option(_FORMATS)] = None,  # noqa: A002
    output: Output = None,
) -> None:
    """Find the casts of a JAX program, and their causes.

    The program is a function, or the jitted functions that a script calls. With --cost a function runs, and arrays that
    --args describes have random values of the standard normal distribution if they are floating, and zeros otherwise.
    """
    with loading():  # JAX, which most commands do not need
        from supremum import tracing

    form = chosen_format(format, output, _FORMATS)
    _check_baselines(baseline, write_baseline)
    failing = tuple(fail_on or (("promotion",) if baseline is not None else ()))
    forbidden = tracing.Forbidden.of(failing, allow or (), baseline)
    tracing.CastReport(()).select(kinds=kinds or ())  # an unknown class is an error before the program runs
    tool, instead = _tools(cost)
    with program_output(form, output):
        programs, error = measure_program(target, args, script_arguments, tool, runs=cost, instead=instead)
    programs = _select(programs, kinds or (), files or (), libraries or ())
    failures = tuple(cast for each in programs for cast in forbidden.among(each.report))
    _print(programs, form, forbidden, output)
    check = "--write-baseline" if write_baseline else "--baseline" if baseline else "--fail-on" if failing else ""
    problem = shown_error(error) if error is not None else _failure_of_check(check, target, programs, failures)
    if problem:
        typer.echo(problem, err=True)
        raise typer.Exit(FAILURE)
    if write_baseline is not None:
        _write_baseline(programs, write_baseline)
    elif not (kinds or files or libraries):
        _print_gone(programs, forbidden.baseline, baseline)


def _check_baselines(baseline: Path | None, write_baseline: Path | None) -> None:
    if baseline is not None and write_baseline is not None:
        raise ArgumentError("--baseline compares with a file and --write-baseline writes it; give one of them.")
    if write_baseline == STANDARD_OUTPUT:
        raise ArgumentError("--write-baseline must be a file, because its entries are relative to its folder.")


def _tools(cost: bool) -> tuple[Tool, Callable[[JittedCall], CastReport] | None]:
    """What measures a function, and what makes the report on a call that cannot be measured."""
    if cost:
        from supremum.numerics import promotion_costs

        return promotion_costs, _casts_with_bytes
    from supremum.tracing import casts as find_casts

    return find_casts, None


def _casts_with_bytes(call: JittedCall) -> CastReport:
    """The casts of a call with the bytes that promotions cost, but without the errors, which cannot be measured."""
    from supremum.tracing import casts_of

    return casts_of(call.program, cost=True)


def _select(
    programs: list[MeasuredProgram], kinds: Sequence[str], files: Sequence[str], libraries: Sequence[str]
) -> list[MeasuredProgram]:
    """The reports with only the casts of some classes, files and libraries; all if none are named."""
    known = sorted({cast.library for each in programs for cast in each.report} - {""})
    for library in libraries:
        chosen("library that casts", library, known)
    if not (kinds or files or libraries):
        return programs
    return [
        replace(each, report=each.report.select(kinds=kinds, files=files, libraries=libraries)) for each in programs
    ]


def _print(programs: Sequence[MeasuredProgram], form: str, forbidden: Forbidden, output: Path | None) -> None:
    """Print the reports in colour in a terminal, or write them."""
    console = Console()
    if form == "terminal" and output in (None, STANDARD_OUTPUT) and console.is_terminal:
        for each in programs:
            console.print(f"\n{each.title}", style="bold", markup=False, highlight=False)
            console.print(each.report)
    else:
        put_text(_report_text(programs, form, forbidden), output)


def _failure_of_check(check: str, target: str, programs: Sequence[MeasuredProgram], failures: tuple[Cast, ...]) -> str:
    """Why a check fails; empty if it succeeds.

    Args:
        check: the option that asks for the check; empty if none does.
        target: the program.
        programs: the reports.
        failures: the forbidden casts.
    """
    from supremum.tracing import ForbiddenCastError

    if check and not programs:
        return f"supremum: {check} checked nothing: {NOTHING} in {shortened(target)}"
    return str(ForbiddenCastError(failures)) if failures else ""


def _print_gone(programs: Sequence[MeasuredProgram], known: Baseline | None, path: Path | None) -> None:
    """Say how many casts of a baseline are gone."""
    gone = 0 if known is None else known.gone([each.report for each in programs])
    if gone:
        name = printable(str(path))
        typer.echo(f"supremum: casts of {name} that are gone: {gone}; write it again with --write-baseline", err=True)


def _write_baseline(programs: Sequence[MeasuredProgram], path: Path) -> None:
    from supremum.tracing import Baseline

    baseline = Baseline.of([each.report for each in programs], path.parent)
    baseline.write(path)
    typer.echo(f"supremum: {printable(str(path))} written, casts: {sum(baseline.counts.values())}", err=True)


def _report_text(programs: Sequence[MeasuredProgram], form: str, forbidden: Forbidden) -> str:
    from supremum.tracing import casts_page, github_annotations

    reports = {each.title: each.report for each in programs}
    if form == "json":
        functions = [
            {"function": each.name, "arguments": list(each.arguments)} | each.report.to_dict() for each in programs
        ]
        return json_text({"functions": functions})
    if form == "html":
        return casts_page(reports)
    if form == "github":
        return "".join(
            github_annotations(forbidden.new(report), forbidden.among(report), Path.cwd())
            for report in reports.values()
        )
    return reports_text(reports)
