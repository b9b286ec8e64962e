"""`supremum table`: the promotion table of a rule set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from supremum.errors import UnknownNameError
from supremum.files import whole_file
from supremum.render import table as drawing
from supremum.tables import RuleTable, rule_table, short_name

_FORMATS = ("terminal", "json", "markdown", "html")
# ANSI names, which follow the reader's own theme; the legend says which is which.
_COLOURS = {"bool": "white", "integer": "cyan", "float": "green", "complex": "magenta", "refused": "bold red"}


def table(
    rules: Annotated[str, typer.Option(help="Name of the rule set.")] = "jax",
    types: Annotated[
        str | None,
        typer.Option(help="'standard', 'all', or names with commas between. Default: standard, and all for json."),
    ] = None,
    format: Annotated[str, typer.Option(help=f"One of {', '.join(_FORMATS)}.")] = "terminal",  # noqa: A002
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file instead.")] = None,
) -> None:
    """Print the type that every pair of types meets in, under a framework's rules."""
    if format not in _FORMATS:
        raise UnknownNameError("format", format, _FORMATS)
    decided = rule_table(rules, types=types or ("all" if format == "json" else "standard"))
    if format == "terminal":
        _print(decided, output)
        return
    if format == "json":
        text = json.dumps(decided.data(), indent=2) + "\n"
    elif format == "markdown":
        text = drawing.to_markdown(decided.drawing())
    else:
        text = drawing.to_html(decided.drawing())
    if output is None:
        typer.echo(text, nl=False)
    else:
        with whole_file(output) as temporary:
            temporary.write_text(text)


def _print(decided: RuleTable, output: Path | None) -> None:
    if output is None:
        _draw(decided, Console())
        return
    with whole_file(output) as temporary, temporary.open("w") as file:
        _draw(decided, Console(file=file))


def _draw(decided: RuleTable, console: Console) -> None:
    drawn = decided.drawing(short=True)
    texts = [[label, *(cell.text for cell in cells)] for label, cells in drawn.rows]
    widths = [max(map(len, column)) for column in zip(["", *drawn.columns], *texts, strict=True)]
    lines = [Text(drawn.title, style="bold"), Text()]
    head = (f"{name:<{width}}" for name, width in zip(["", *drawn.columns], widths, strict=True))
    lines.append(Text(" ".join(head), style="bold"))
    for label, cells in drawn.rows:
        line = Text(f"{label:<{widths[0]}}", style="bold")
        for cell, width in zip(cells, widths[1:], strict=True):
            line.append(f" {cell.text:<{width}}", style=f"not bold {_COLOURS[cell.style]}")
        lines.append(line)
    lines += [Text(), Text("  ").join(Text(meaning, style=_COLOURS[style]) for style, meaning in drawn.legend)]
    codes = [f"{short_name(name)} {name}" for name in decided.types if short_name(name) != name]
    lines.append(Text(", ".join(codes), style="dim"))
    for line in lines:
        line.rstrip()
        console.print(line, soft_wrap=True, highlight=False)
