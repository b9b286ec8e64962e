"""The commands, and how their errors look: one line on standard error.

The exit code is 2 for what the user got wrong, 1 where the work could not be done, and 130 after Ctrl-C.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from supremum.cli.casts import casts
from supremum.cli.demo import demo
from supremum.cli.diff import diff
from supremum.cli.exit_codes import FAILURE, INTERRUPTED, USAGE_ERROR, Interrupts
from supremum.cli.explain import explain, rules
from supremum.cli.explore import explore
from supremum.cli.lattice import lattice
from supremum.cli.launch import launch
from supremum.cli.table import table
from supremum.errors import SupremumError
from supremum.version import __version__


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, BrokenPipeError):
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or (isinstance(ctx.obj, Interrupts) and ctx.obj.seen):
                typer.echo("supremum: interrupted", err=True)
                raise typer.Exit(INTERRUPTED) from None
            if not isinstance(error, (SupremumError, ModuleNotFoundError, OSError)):
                raise
            what, code = _told(error)
            typer.echo(f"supremum: {what}", err=True)
            raise typer.Exit(code) from None


def _told(error: SupremumError | ModuleNotFoundError | OSError) -> tuple[str, int]:
    """What is said of an error, in one line, and the exit code."""
    if isinstance(error, ModuleNotFoundError):
        return f"this command needs {error.name}: pip install 'supremum[all]'", USAGE_ERROR
    return " ".join(str(error).split()), FAILURE if isinstance(error, OSError) else USAGE_ERROR


app = typer.Typer(
    cls=_Commands,
    help="Decide, explain, apply and train with number formats.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(table)
app.command()(casts)
app.command()(diff)
app.command()(explore)
app.command()(lattice)
# So that -5 is a number and no option.
app.command(context_settings={"ignore_unknown_options": True})(explain)
app.command()(rules)
# What comes after the script is the script's.
app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(launch)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction]
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    del version  # its callback has done everything
