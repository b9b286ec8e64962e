"""`supremum launch`: run a script in several processes that end together."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from supremum.launching import HEARTBEATS
from supremum.launching import launch as launch_processes

_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")


def launch(
    script: Annotated[Path, typer.Argument(help="The Python file that each process runs.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments of the script, after --.")] = None,
    processes: Annotated[int, typer.Option("-n", "--processes", help="How many to start on this machine.")] = 1,
    devices_per_process: Annotated[int | None, typer.Option(help="CPU devices of each. Default: JAX's, one.")] = None,
    heartbeat: Annotated[
        int,
        typer.Option(help=f"Seconds of silence until a process counts as dead, {HEARTBEATS[0]} to {HEARTBEATS[1]}."),
    ] = HEARTBEATS[0],
    coordinator: Annotated[
        str | None, typer.Option(help="host:port of process 0, for several machines. Default: this machine alone.")
    ] = None,
    first_id: Annotated[int, typer.Option(help="Id of the first process on this machine.")] = 0,
    total: Annotated[int | None, typer.Option(help="Processes on all machines. Default: those of this one.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds for the whole run. Default: no end.")] = None,
) -> None:
    """Run a script in several processes that end together.

    When one fails, the others are ended, and the error names the one that failed and why.
    """
    consoles = (Console(), Console(stderr=True))

    @cache
    def prefix(process_id: int, number: int) -> str:
        console = consoles[number - 1]
        with console.capture() as captured:
            console.print(Text(f"[{process_id}]", style=_COLOURS[process_id % len(_COLOURS)]), end=" ")
        return captured.get()

    def show(process_id: int, number: int, line: str) -> None:
        typer.echo(prefix(process_id, number) + line, err=number == 2, color=True)

    ended = launch_processes(
        script,
        arguments[1:] if arguments and arguments[0] == "--" else arguments or [],
        show=show,
        processes=processes,
        devices_per_process=devices_per_process,
        heartbeat=heartbeat,
        coordinator=coordinator,
        first_id=first_id,
        total=total,
        timeout=timeout,
    )
    if ended.message:
        typer.echo(f"supremum launch: {ended.message}", err=True)
    raise typer.Exit(ended.exit_code)
