"""The commands, and their error messages: one line on standard error."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from supremum.argument_checks import chosen
from supremum.cli.attribute import attribute
from supremum.cli.casts import casts
from supremum.cli.demo import demo
from supremum.cli.examples import epilog
from supremum.cli.exit_codes import CLOSED_PIPE, EXIT_CODES, FAILURE, INTERRUPTED, USAGE_ERROR, Interrupts
from supremum.cli.nans import nans
from supremum.cli.profile import profile
from supremum.cli.rule_sets import diff, explain, explore, lattice, rules, table
from supremum.errors import SupremumError, UnknownNameError, shortened
from supremum.extras import missing_packages
from supremum.version import __version__

# The class of click, which newer versions of typer contain.
_UsageError: Any = typer.BadParameter.__bases__[0]


class _Commands(TyperGroup):
    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command, and end the process with its exit code."""
        try:
            code = super().main(*args, **options | {"standalone_mode": False})
        except _UsageError as error:
            _print_usage_error(error)
            code = USAGE_ERROR
        except SystemExit as ended:
            # typer and rich exit with 1 when the reader of standard output closes it.
            code = CLOSED_PIPE if isinstance(ended.__context__, BrokenPipeError) else ended.code
        sys.exit(code or 0)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by its name."""
        chosen("command", args[0], self.commands)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
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
            if isinstance(error, ModuleNotFoundError) and not isinstance(error, SupremumError):
                error = missing_packages("This command", [error.name or str(error)])
            typer.echo(f"supremum: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(FAILURE if isinstance(error, OSError) else USAGE_ERROR) from None


def _print_usage_error(error: Any) -> None:
    """Print an error of the command line's syntax in one line."""
    command = "supremum" if error.ctx is None else error.ctx.command_path
    message = " ".join(str(error.format_message()).split()).removesuffix(".")
    if error.ctx is not None and hasattr(error, "possibilities"):
        known = [name for each in error.ctx.command.get_params(error.ctx) for name in each.opts if name.startswith("-")]
        message = str(UnknownNameError("option", error.option_name, known))
    typer.echo(f"{command}: {shortened(message)}; see {command} -h", err=True)


app: typer.Typer = typer.Typer(
    name="supremum",
    cls=_Commands,
    help="Decide, explain, apply and train with number formats.",
    epilog="\n".join(("\b", "Exit codes:", *(f"  {code:3}  {meaning}" for code, meaning in EXIT_CODES.items()))),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its boxes cut names off in narrow terminals
)
_SETTINGS: dict[str, dict[str, Any]] = {
    "explain": {"ignore_unknown_options": True},  # -5 is a number, not an option
}
for _command in (explain, table, diff, lattice, explore, rules, casts, profile, nans, attribute, demo):
    _name = _command.__name__
    app.command(_name, epilog=epilog(_name), context_settings=_SETTINGS.get(_name))(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction]
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    del version  # handled by its callback
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE_ERROR)
