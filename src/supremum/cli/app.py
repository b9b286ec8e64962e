"""The commands, and their error messages: one line on standard error.

The exit code is 2 for a usage error, 1 for a failure, and 130 after Ctrl-C.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from supremum.cli.casts import casts
from supremum.cli.demo import demo
from supremum.cli.exit_codes import FAILURE, INTERRUPTED, USAGE_ERROR, Interrupts
from supremum.cli.launch import launch
from supremum.cli.rule_sets import diff, explain, explore, lattice, rules, table
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
            message = " ".join(str(error).split())
            if isinstance(error, ModuleNotFoundError):
                message = f"This command needs {error.name}; install it with: pip install 'supremum[all]'"
            typer.echo(f"supremum: {message}", err=True)
            raise typer.Exit(FAILURE if isinstance(error, OSError) else USAGE_ERROR) from None


app: typer.Typer = typer.Typer(
    cls=_Commands,
    help="Decide, explain, apply and train with number formats.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _command in (demo, table, casts, diff, explore, lattice):
    app.command()(_command)
# -5 is a number, not an option.
app.command(context_settings={"ignore_unknown_options": True})(explain)
app.command()(rules)
# Options after the script belong to the script.
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
    del version  # handled by its callback
