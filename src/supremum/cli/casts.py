"""`supremum casts`: every cast of a program, and what caused it."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from supremum.atomic_files import is_file
from supremum.cli.exit_codes import FAILURE, loading
from supremum.cli.output import STANDARD_OUTPUT, Output, chosen_format, format_option, json_text, put_text
from supremum.errors import ArgumentError, UnknownNameError, shortened, shown

if TYPE_CHECKING:
    from supremum.tracing import Recorded

_FORMATS = ("terminal", "json", "html")


def casts(
    target: Annotated[
        str, typer.Argument(help="A script, or module:function, whose arguments --args describes.", show_default=False)
    ],
    script_arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of the script, after --.", show_default=False)
    ] = None,
    args: Annotated[
        str | None, typer.Option(help="Arguments of the function, such as 'f32[8,128], bf16[128], 0.5'.")
    ] = None,
    fail_on: Annotated[
        list[str] | None, typer.Option(help="A class of casts to fail on, with exit code 1; repeat for several.")
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option(help="With --fail-on: a rule set or a file pattern; repeat for several.")
    ] = None,
    format: Annotated[str | None, format_option(_FORMATS)] = None,  # noqa: A002
    output: Output = None,
) -> None:
    """Find the casts of a JAX program, and their causes.

    The program is a function, or the jitted functions that a script calls.
    """
    with loading():  # JAX, which most commands do not need
        from supremum.tracing import Forbidden, ForbiddenCastError

    format = chosen_format(format, output, _FORMATS)  # noqa: A001
    forbidden = Forbidden.of(fail_on or (), allow or ())
    if args is None and ":" in target and not target.endswith(".py"):
        raise ArgumentError(f"The function {shortened(target)} needs --args, such as --args 'f32[8,128], bf16[128]'.")
    # A report for other programs must not contain what the traced program prints.
    is_printed = output in (None, STANDARD_OUTPUT)
    with _printing_to_errors() if is_printed and format != "terminal" else nullcontext():
        if args is None:
            recorded, error = _of_script(target, script_arguments or [])
        else:
            recorded, error = _of_function(target, args)
    console = Console()
    if format == "terminal" and is_printed and console.is_terminal:
        for each in recorded:
            console.print(f"\n{each}", style="bold", markup=False, highlight=False)
            console.print(each.report)
    else:
        put_text(_written(recorded, format), output)
    found = tuple(cast for each in recorded for cast in each.report if cast in forbidden)
    if error is not None:
        problem = _shown(error)
    elif fail_on and not recorded:
        problem = f"supremum: --fail-on checked nothing: {shortened(target)} called no jitted function"
    elif found:
        problem = str(ForbiddenCastError(found))
    else:
        return
    typer.echo(problem, err=True)
    raise typer.Exit(FAILURE)


def _of_function(target: str, args: str) -> tuple[list[Recorded], BaseException | None]:
    from supremum.tracing import Recorded, parse_arguments
    from supremum.tracing import casts as casts_in

    module_name, _, path = target.partition(":")
    if not path or not all(name.isidentifier() for name in (*module_name.split("."), *path.split("."))):
        raise ArgumentError(
            f"With --args, the target must be module:function, such as train:loss, got {shown(target)}."
        )
    arguments = parse_arguments(args)
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
    report, error = _tried(lambda: casts_in(found)(*arguments))
    recorded = [Recorded(path, tuple(part.strip() for part in args.split(", ")), report)] if report is not None else []
    return recorded, error


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


def _written(recorded: Sequence[Recorded], format: str) -> str:  # noqa: A002
    if format == "json":
        functions = [
            {"function": each.name, "arguments": list(each.arguments)} | each.report.to_dict() for each in recorded
        ]
        return json_text({"functions": functions})
    if format == "html":
        return "\n".join(f"<h2>{escape(each.name)}</h2>\n{each.report.to_html()}" for each in recorded) + "\n"
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
