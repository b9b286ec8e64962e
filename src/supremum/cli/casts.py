"""`supremum casts`: every cast of a program, and what caused it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from supremum.argument_checks import chosen
from supremum.cli.exit_codes import FAILURE, loading
from supremum.cli.output import (
    STANDARD_OUTPUT,
    Output,
    checked_output,
    chosen_format,
    format_option,
    json_text,
    put_text,
)
from supremum.cli.programs import (
    ArgsOption,
    ScriptArguments,
    Target,
    call_of,
    check_target,
    program_output,
    run_script,
    shown_error,
    tried,
    with_values,
)
from supremum.errors import ArgumentError, SupremumError, shortened

if TYPE_CHECKING:
    from supremum.tracing import Baseline, Cast, CastReport, JittedCall, Recorded

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
        from supremum.tracing import CastReport, Forbidden, ForbiddenCastError

    form = chosen_format(format, output, _FORMATS)
    if baseline is not None and write_baseline is not None:
        raise ArgumentError("--baseline compares with a file and --write-baseline writes it; give one of them.")
    if write_baseline == STANDARD_OUTPUT:
        raise ArgumentError("--write-baseline must be a file, because its entries are relative to its folder.")
    failing = tuple(fail_on or (("promotion",) if baseline is not None else ()))
    forbidden = Forbidden.of(failing, allow or (), baseline)
    CastReport(()).select(kinds=kinds or ())  # an unknown class is an error before the program runs
    check_target(target, args)
    with program_output(form, output):
        if args is None:
            recorded, error = _of_script(target, script_arguments or [], cost=cost)
        else:
            recorded, error = _of_function(target, args, cost=cost)
    is_filtered = bool(kinds or files or libraries)
    recorded = _select(recorded, kinds or (), files or (), libraries or ())
    failures = tuple(cast for each in recorded for cast in forbidden.among(each.report))
    _print(recorded, form, failures, output)
    checks = "--write-baseline" if write_baseline else "--baseline" if baseline else "--fail-on" if failing else ""
    if error is not None:
        problem = shown_error(error)
    elif checks and not recorded:
        problem = f"supremum: {checks} checked nothing: {shortened(target)} called no jitted function"
    else:
        problem = str(ForbiddenCastError(failures)) if failures else ""
    if problem:
        typer.echo(problem, err=True)
        raise typer.Exit(FAILURE)
    if write_baseline is not None:
        _write_baseline(recorded, write_baseline)
    elif not is_filtered:
        _print_gone(recorded, forbidden.baseline, baseline)


def _select(
    recorded: list[Recorded], kinds: Sequence[str], files: Sequence[str], libraries: Sequence[str]
) -> list[Recorded]:
    """The reports with only the casts of some classes, files and libraries; all if none are named."""
    known = sorted({cast.library for each in recorded for cast in each.report} - {""})
    for library in libraries:
        chosen("library that casts", library, known)
    if not (kinds or files or libraries):
        return recorded
    return [
        replace(each, report=each.report.select(kinds=kinds, files=files, libraries=libraries)) for each in recorded
    ]


def _print(recorded: Sequence[Recorded], form: str, failures: tuple[Cast, ...], output: Path | None) -> None:
    """Print the reports in colour in a terminal, or write them."""
    console = Console()
    if form == "terminal" and output in (None, STANDARD_OUTPUT) and console.is_terminal:
        for each in recorded:
            console.print(f"\n{each}", style="bold", markup=False, highlight=False)
            console.print(each.report)
    else:
        put_text(_report_text(recorded, form, failures), output)


def _print_gone(recorded: Sequence[Recorded], known: Baseline | None, path: Path | None) -> None:
    """Say how many casts of a baseline are gone."""
    gone = 0 if known is None else known.gone([each.report for each in recorded])
    if gone:
        typer.echo(f"supremum: casts of {path} that are gone: {gone}; write it again with --write-baseline", err=True)


def _write_baseline(recorded: Sequence[Recorded], path: Path) -> None:
    from supremum.tracing import Baseline

    baseline = Baseline.of([each.report for each in recorded], path.parent)
    baseline.write(path)
    typer.echo(f"supremum: {path} written, casts: {sum(baseline.counts.values())}", err=True)


def _of_function(target: str, args: str, *, cost: bool) -> tuple[list[Recorded], BaseException | None]:
    from supremum.tracing import Recorded
    from supremum.tracing import casts as casts_in

    call, error = call_of(target, args)
    if call is None:
        return [], error
    if cost:
        from supremum.numerics import promotion_costs

        report, error = tried(lambda: promotion_costs(call.function)(*with_values(call.arguments)))
        if isinstance(error, SupremumError):
            raise error
    else:
        report, error = tried(lambda: casts_in(call.function)(*call.arguments))
    return ([] if report is None else [Recorded(call.name, (args.strip(),), report)]), error


def _of_script(script: str, arguments: Sequence[str], *, cost: bool) -> tuple[list[Recorded], BaseException | None]:
    from supremum.tracing import Recorded, watch_jitted
    from supremum.tracing import casts as casts_in

    recorded: list[Recorded] = []

    def record(call: JittedCall) -> None:
        report = _costs_of(call) if cost else casts_in(call.function)(*call.args, **call.kwargs)
        recorded.append(Recorded(call.name, call.types, report))

    with watch_jitted(record):
        error = run_script(script, arguments)
    return recorded, error


def _costs_of(call: JittedCall) -> CastReport:
    """The casts of a call with what its promotions cost; without the errors if they cannot be measured."""
    from supremum.numerics import promotion_costs
    from supremum.tracing import casts_of

    try:
        return promotion_costs(call.function)(*call.args, **call.kwargs)
    except SupremumError as error:
        typer.echo(f"supremum: the errors of {call} are left out: {error}", err=True)
        return casts_of(call.program, cost=True)


def _report_text(recorded: Sequence[Recorded], form: str, failures: Sequence[Cast]) -> str:
    from supremum.tracing import casts_page, github_annotations

    if form == "json":
        functions = [
            {"function": each.name, "arguments": list(each.arguments)} | each.report.to_dict() for each in recorded
        ]
        return json_text({"functions": functions})
    if form == "html":
        return casts_page({str(each): each.report for each in recorded})
    if form == "github":
        return "".join(github_annotations(each.report.casts, failures, Path.cwd()) for each in recorded)
    if not recorded:
        return "no jitted function was called\n"
    return "\n\n".join(f"{each}: {each.report}" for each in recorded) + "\n"
