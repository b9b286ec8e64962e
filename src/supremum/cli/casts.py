"""`supremum casts`: every cast of a program, and who caused it."""

from __future__ import annotations

import importlib
import json
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from supremum.cli.output import checked_format, put_text
from supremum.errors import ArgumentError, UnknownNameError

if TYPE_CHECKING:
    from supremum.tracing.recording import Recorded

_FORMATS = ("terminal", "json", "html")
_FAILED = 1


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
    format: Annotated[str, typer.Option(help=f"One of {', '.join(_FORMATS)}.")] = "terminal",  # noqa: A002
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file instead.")] = None,
) -> None:
    """Find every cast in a JAX program, and who caused it: of a function, or of what a script jits and calls."""
    from supremum.tracing.allowing import Forbidden  # needs JAX: only this command waits for it
    from supremum.tracing.forbidding import ForbiddenCastError

    checked_format(format, _FORMATS)
    forbidden = Forbidden.of(fail_on or (), allow or ())
    if args is None and ":" in target and not target.endswith(".py"):
        raise ArgumentError(f"{target} is a function: say what to trace it with, as --args 'f32[8,128], bf16[128]'")
    error: BaseException | None = None
    if args is None:
        recorded, error = _of_script(target, script_arguments or [])
    else:
        recorded, error = _of_function(target, args)
    console = Console()
    if format == "terminal" and output is None and console.is_terminal:
        for each in recorded:
            console.print(f"\n{each}", style="bold", markup=False, highlight=False)
            console.print(each.report)
    else:
        put_text(_written(recorded, format), output)
    if error is not None:
        _show(error)
        raise typer.Exit(_FAILED)
    found = tuple(cast for each in recorded for cast in each.report if cast in forbidden)
    if found:
        typer.echo(str(ForbiddenCastError(found)), err=True)
        raise typer.Exit(_FAILED)


def _of_function(target: str, args: str) -> tuple[list[Recorded], BaseException | None]:
    from supremum.tracing import casts as casts_in
    from supremum.tracing.recording import Recorded
    from supremum.tracing.specs import parse_arguments

    module_name, _, path = target.partition(":")
    if not path:
        raise ArgumentError(f"{target}: --args goes with module:function")
    arguments = parse_arguments(args)
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        function: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not module_name.startswith(missing.name):
            return [], missing
        raise ArgumentError(f"there is no module {missing.name} here: start from the folder it is in") from None
    except Exception as error:  # the user's, whatever it is
        return [], error
    for name in path.split("."):
        if not hasattr(function, name):
            raise UnknownNameError("function", name, [each for each in dir(function) if not each.startswith("_")])
        function = getattr(function, name)
    try:
        report = casts_in(function)(*arguments)
    except Exception as error:  # the user's, whatever it is
        return [], error
    return [Recorded(path, tuple(part.strip() for part in args.split(", ")), report)], None


def _of_script(script: str, arguments: Sequence[str]) -> tuple[list[Recorded], BaseException | None]:
    from supremum.tracing.recording import record_jitted

    path = Path(script)
    if not path.is_file():
        raise ArgumentError(f"there is no file {script}: give a script, or module:function with --args")
    argv, paths = sys.argv, list(sys.path)
    sys.argv, sys.path[:] = [script, *arguments], [str(path.parent.resolve()), *paths]
    error: BaseException | None = None
    with record_jitted() as recorded:
        try:
            runpy.run_path(str(path.resolve()), run_name="__main__")
        except SystemExit as ended:
            error = ended if ended.code not in (None, 0) else None
        except Exception as raised:  # the user's, whatever it is
            error = raised
        finally:
            sys.argv, sys.path[:] = argv, paths
    return recorded, error


def _written(recorded: Sequence[Recorded], format: str) -> str:  # noqa: A002
    if format == "json":
        functions = [
            {"function": each.name, "arguments": list(each.arguments)} | each.report.to_dict() for each in recorded
        ]
        return json.dumps({"functions": functions}, indent=2) + "\n"
    if format == "html":
        return "\n".join(f"<h2>{each.name}</h2>\n{each.report.to_html()}" for each in recorded) + "\n"
    if not recorded:
        return "no jitted function was called\n"
    return "\n\n".join(f"{each}: {each.report}" for each in recorded) + "\n"


def _show(error: BaseException) -> None:
    """The user's error as Python would have shown it, without the calls that led from here to their program."""
    if isinstance(error, SystemExit):
        typer.echo(f"supremum: the script ended with {error.code}", err=True)
        return
    typer.echo(
        "".join(traceback.format_exception(type(error), error, _theirs(error.__traceback__))), err=True, nl=False
    )


def _theirs(trace: TracebackType | None) -> TracebackType | None:
    ours = (str(Path(__file__).parents[1]), "<frozen", runpy.__file__, importlib.__file__)
    first = trace
    while first is not None and first.tb_frame.f_code.co_filename.startswith(ours):
        first = first.tb_next
    return first or trace
