"""The commands, and how their errors look: one line on standard error and exit code 2 for what the user got wrong."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from supremum import __version__
from supremum.cli.casts import casts
from supremum.cli.demo import demo
from supremum.cli.diff import diff
from supremum.cli.explain import explain, rules
from supremum.cli.explore import explore
from supremum.cli.lattice import lattice
from supremum.cli.launch import launch
from supremum.cli.table import table
from supremum.errors import SupremumError

_USAGE_ERROR = 2


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SupremumError as error:
            typer.echo(f"supremum: {error}", err=True)
        except ModuleNotFoundError as missing:
            typer.echo(f"supremum: this command needs {missing.name}: pip install 'supremum[all]'", err=True)
        raise typer.Exit(_USAGE_ERROR)


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
