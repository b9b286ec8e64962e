"""`supremum explore`: an HTML page for exploring the rule sets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from supremum.cli.exit_codes import loading
from supremum.cli.output import STANDARD_OUTPUT, Output, put_text
from supremum.operations import as_operation


def explore(
    output: Output = Path("explorer.html"),
    operation: Annotated[
        list[str] | None, typer.Option(help="An operation of two operands to offer; repeat for several. Default: all.")
    ] = None,
) -> None:
    """Write a self-contained page that shows, compares and explains the decisions of every rule set."""
    with loading():  # Jinja2, which most commands do not need
        from supremum.explorer import BINARY, STEPS, explorer_page

    operations = tuple(dict.fromkeys(as_operation(name).name for name in operation or BINARY))
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<20}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("asking", total=STEPS)

        def show(rules: str) -> None:
            progress.update(task, advance=1, description=f"asked {rules}")

        page = explorer_page(show, operations=operations, processes=min(os.cpu_count() or 1, STEPS))
    put_text(page, output)
    if output != STANDARD_OUTPUT:
        typer.echo(f"{output}: {len(page.encode()):,} bytes")
