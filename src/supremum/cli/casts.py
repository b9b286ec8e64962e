"""`supremum casts`: every cast of a program, and what caused it."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from supremum.argument_checks import chosen
from supremum.atomic_files import is_file
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
from supremum.errors import ArgumentError, UnknownNameError, shortened, shown

if TYPE_CHECKING:
    from supremum.tracing import Cast, Recorded

_FORMATS = ("terminal", "json", "html", "github")


def casts(
    target: Annotated[
        str, typer.Argument(help="A script, or module:function, whose arguments --args describes.", show_default=False)
    ],
    script_arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of the script, after --.", show_default=False)
    ] = None,
    args: Annotated[
        str | None,
        typer.Option(
            help="Arguments of the function, such as 'f32[8,128], {\"w\": bf16[128]}, key[], 0.5'; or a function "
            "that makes them, as module:make_args."
        ),
    ] = None,
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
    format: Annotated[str | None, format_option(_FORMATS)] = None,  # noqa: A002
    output: Output = None,
) -> None:
    """Find the casts of a JAX program, and their causes.

    The program is a function, or the jitted functions that a script calls.
    """
    with loading():  # JAX, which most commands do not need
        from supremum.tracing import CastReport, Forbidden, ForbiddenCastError

    wanted = chosen_format(format, output, _FORMATS)
    if baseline is not None and write_baseline is not None:
        raise ArgumentError("--baseline compares with a file and --write-baseline writes it; give one of them.")
    if write_baseline == STANDARD_OUTPUT:
        raise ArgumentError("--write-baseline must be a file, because its entries are relative to its folder.")
    failing = tuple(fail_on or (("promotion",) if baseline is not None else ()))
    forbidden = Forbidden.of(failing, allow or (), baseline)
    CastReport(()).select(kinds=kinds or ())  # an unknown class is an error before the program runs
    if args is None and ":" in target and not target.endswith(".py"):
        raise ArgumentError(f"The function {shortened(target)} needs --args, such as --args 'f32[8,128], bf16[128]'.")
    # A report for other programs must not contain what the traced program prints.
    is_printed = output in (None, STANDARD_OUTPUT)
    with _printing_to_errors() if is_printed and wanted != "terminal" else nullcontext():
        if args is None:
            recorded, error = _of_script(target, script_arguments or [])
        else:
            recorded, error = _of_function(target, args)
    known = sorted({cast.library for each in recorded for cast in each.report} - {""})
    for library in libraries or ():
        chosen("library that casts", library, known)
    is_filtered = bool(kinds or files or libraries)
    if is_filtered:
        choice: Any = {"kinds": kinds or (), "files": files or (), "libraries": libraries or ()}
        recorded = [replace(each, report=each.report.select(**choice)) for each in recorded]
    found = tuple(cast for each in recorded for cast in forbidden.among(each.report))
    console = Console()
    if wanted == "terminal" and is_printed and console.is_terminal:
        for each in recorded:
            console.print(f"\n{each}", style="bold", markup=False, highlight=False)
            console.print(each.report)
    else:
        put_text(_written(recorded, wanted, found), output)
    if error is not None:
        problem = _shown(error)
    elif (failing or write_baseline is not None) and not recorded:
        option = (
            "--write-baseline" if write_baseline is not None else "--baseline" if baseline is not None else "--fail-on"
        )
        problem = f"supremum: {option} checked nothing: {shortened(target)} called no jitted function"
    elif found:
        problem = str(ForbiddenCastError(found))
    else:
        if write_baseline is not None:
            _write_baseline(recorded, write_baseline)
        elif forbidden.baseline is not None and not is_filtered:
            gone = forbidden.baseline.gone([each.report for each in recorded])
            if gone:
                typer.echo(
                    f"supremum: casts of {baseline} that are gone: {gone}; write it again with --write-baseline",
                    err=True,
                )
        return
    typer.echo(problem, err=True)
    raise typer.Exit(FAILURE)


def _write_baseline(recorded: Sequence[Recorded], path: Path) -> None:
    from supremum.tracing import Baseline

    written = Baseline.of([each.report for each in recorded], path.parent)
    written.write(path)
    typer.echo(f"supremum: {path} written, casts: {sum(written.counts.values())}", err=True)


def _of_function(target: str, args: str) -> tuple[list[Recorded], BaseException | None]:
    from supremum.tracing import Recorded, check_call, made_arguments, parse_arguments
    from supremum.tracing import casts as casts_in

    module_name, _, path = target.partition(":")
    if not path or not all(name.isidentifier() for name in (*module_name.split("."), *path.split("."))):
        raise ArgumentError(
            f"With --args, the target must be module:function, such as train:loss, got {shown(target)}."
        )
    make = made_arguments(args)
    arguments = parse_arguments(args) if make is None else ()
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    found, error = _tried(lambda: importlib.import_module(module_name))
    if isinstance(error, ModuleNotFoundError) and module_name.startswith(error.name or "\0"):
        raise ArgumentError(f"There is no module {shortened(module_name)} here; run the command in its folder.")
    for name in path.split(".") if error is None else ():
        inside = found
        found, error = _tried(partial(getattr, inside, name))
        if isinstance(error, AttributeError):
            raise UnknownNameError("function", name, [each for each in dir(inside) if not each.startswith("_")])
    if error is not None:
        return [], error
    if make is not None:
        arguments, error = _tried(make)
        if error is not None:
            return [], error
    check_call(path, found, arguments)
    report, error = _tried(lambda: casts_in(found)(*arguments))
    return ([] if report is None else [Recorded(path, (args.strip(),), report)]), error


def _tried(run: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Run the user's program. Return its result, or the error that it raises, even `SystemExit`.

    Raises:
        KeyboardInterrupt: for Ctrl-C.
    """
    try:
        return run(), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, error


def _of_script(script: str, arguments: Sequence[str]) -> tuple[list[Recorded], BaseException | None]:
    from supremum.tracing import record_jitted

    path = Path(script)
    if not is_file(path):
        raise ArgumentError(f"There is no file {shortened(script)}; give a script, or module:function with --args.")
    argv, paths = sys.argv, list(sys.path)
    sys.argv, sys.path[:] = [script, *arguments], [str(path.parent.resolve()), *paths]
    with record_jitted() as recorded:
        try:
            _, error = _tried(lambda: runpy.run_path(str(path.resolve()), run_name="__main__"))
        finally:
            sys.argv, sys.path[:] = argv, paths
    is_success = isinstance(error, SystemExit) and error.code in (None, 0)
    return recorded, None if is_success else error


@contextmanager
def _printing_to_errors() -> Generator[None]:
    """Redirect standard output to standard error in the block, also for C libraries and child processes."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _written(recorded: Sequence[Recorded], format: str, found: Sequence[Cast]) -> str:  # noqa: A002
    from supremum.tracing import casts_page, github_annotations

    if format == "json":
        functions = [
            {"function": each.name, "arguments": list(each.arguments)} | each.report.to_dict() for each in recorded
        ]
        return json_text({"functions": functions})
    if format == "html":
        return casts_page({str(each): each.report for each in recorded})
    if format == "github":
        return "".join(github_annotations(each.report.casts, found, Path.cwd()) for each in recorded)
    if not recorded:
        return "no jitted function was called\n"
    return "\n\n".join(f"{each}: {each.report}" for each in recorded) + "\n"


def _shown(error: BaseException) -> str:
    """The user's error as Python would print it, without the frames between this command and the user's program."""
    if isinstance(error, SystemExit):
        return f"supremum: the program called sys.exit({shown(error.code)})"
    ours = (str(Path(__file__).parents[1]), "<frozen", runpy.__file__, importlib.__file__)
    first = error.__traceback__
    while first is not None and first.tb_frame.f_code.co_filename.startswith(ours):
        first = first.tb_next
    lines = traceback.format_exception(type(error), error, first or error.__traceback__)
    return "".join(lines).removesuffix("\n")
