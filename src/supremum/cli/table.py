"""`supremum table`: the promotion table of a rule set."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from supremum.analysis import Comparison, RuleTable, compare, rule_table, short_name
from supremum.cli.output import Output, checked_format, put_drawn, put_text
from supremum.errors import ArgumentError
from supremum.render import table_to_html, table_to_markdown

FORMATS = ("terminal", "json", "markdown", "html")
# ANSI colours follow the terminal's theme; the legend explains them.
COLOURS = {"bool": "white", "integer": "cyan", "float": "green", "complex": "magenta", "refused": "bold red"}


def table(
    rules: Annotated[str | None, typer.Option(help="Name of the rule set. Default: the rules in force, jax.")] = None,
    operation: Annotated[str | None, typer.Option(help="Name of an operation of two operands, such as divide.")] = None,
    against: Annotated[str | None, typer.Option(help="Mark the cells that differ from this rule set's.")] = None,
    weak_as_64_bit: Annotated[
        bool, typer.Option("--weak-as-64-bit", help="Let the other rule set read Python numbers as 64-bit dtypes.")
    ] = False,
    unknown: Annotated[
        list[str] | None, typer.Option(help="A format the other rule set is taken not to know; repeat for several.")
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(help="'standard', 'all', or names separated by commas. Default: standard, and all for json."),
    ] = None,
    format: Annotated[str, typer.Option(help=f"One of {', '.join(FORMATS)}.")] = "terminal",  # noqa: A002
    output: Output = None,
) -> None:
    """Print the type that every pair of types promotes to under a framework's rules."""
    checked_format(format, FORMATS)
    if against is None and (weak_as_64_bit or unknown):
        raise ArgumentError("--weak-as-64-bit and --unknown need --against, because they apply to that rule set.")
    chosen = types if types is not None else "all" if format == "json" else "standard"
    compared = None
    if against is not None:
        options: Any = {"weak_as_64_bit": weak_as_64_bit, "unknown": unknown or ()}
        compared = compare(rules, against, operation, chosen, **options)
    decided = rule_table(rules, operation, chosen) if compared is None else compared.left
    if format == "terminal":
        put_drawn(lambda console: draw(decided, console, compared), output)
    elif format == "json":
        put_text(json.dumps(_data(decided, compared), indent=2) + "\n", output)
    else:
        write = table_to_markdown if format == "markdown" else table_to_html
        put_text(write(decided.drawing() if compared is None else compared.drawing()), output)


def _data(decided: RuleTable, compared: Comparison | None) -> dict[str, Any]:
    if compared is None:
        return decided.data()
    differing = [list(pair) for pair in compared.differing]
    return decided.data() | {"against": compared.right.data(), "differing": differing}


def draw(decided: RuleTable, console: Console, compared: Comparison | None = None) -> None:
    """Draw a table on a console, in short codes with a legend; marked cells are reversed.

    Args:
        decided: the table.
        console: the console.
        compared: a comparison, to mark the cells that differ.
    """
    drawn = decided.drawing(short=True) if compared is None else compared.drawing(short=True)
    texts = [[label, *(cell.text for cell in cells)] for label, cells in drawn.rows]
    widths = [max(map(len, column)) for column in zip(["", *drawn.columns], *texts, strict=True)]
    lines = [Text(drawn.title, style="bold"), Text()]
    head = (f"{name:<{width}}" for name, width in zip(["", *drawn.columns], widths, strict=True))
    lines.append(Text(" ".join(head), style="bold"))
    # Without colours, a mark needs a character.
    mark = "" if console.color_system or compared is None else "!"
    for label, cells in drawn.rows:
        line = Text(f"{label:<{widths[0]}}", style="bold")
        for cell, width in zip(cells, widths[1:], strict=True):
            style = f"not bold {COLOURS[cell.style]}{' reverse' if cell.marked else ''}"
            line.append(mark if mark and cell.marked else " ")
            line.append(f"{cell.text:<{width}}", style=style)
        lines.append(line)
    lines += [Text(), Text("  ").join(Text(meaning, style=COLOURS[style]) for style, meaning in drawn.legend)]
    codes = [f"{short_name(name)} {name}" for name in decided.types if short_name(name) != name]
    lines.append(Text(", ".join(codes), style="dim"))
    if mark:
        lines.append(Text(f"! differs from {compared.right.rules}" if compared is not None else ""))
    for line in lines:
        line.rstrip()
        console.print(line, soft_wrap=True, highlight=False)
