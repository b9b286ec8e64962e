"""`supremum diff`: two rule sets side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from supremum.analysis import Comparison, Distances, Groupings, compare, compare_groupings, distances, told
from supremum.cli.distances import draw_distances
from supremum.cli.output import Output, chosen_format, put_drawn, put_text
from supremum.cli.table import COLOURS
from supremum.decisions import Decision
from supremum.errors import ArgumentError, shortened
from supremum.formats import as_format
from supremum.render import side_by_side_to_html, side_by_side_to_svg, table_to_html, table_to_svg
from supremum.rules import get_rules

_FORMATS = ("terminal", "json", "html", "svg")
_TRIPLES = 5


def diff(
    first: Annotated[str | None, typer.Argument(help="Name of a rule set.", show_default=False)] = None,
    second: Annotated[str | None, typer.Argument(help="Name of a second rule set.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Print the distances between all rule sets instead.")] = False,
    operation: Annotated[str | None, typer.Option(help="Name of an operation of two operands.")] = None,
    types: Annotated[
        str, typer.Option(help="'standard', 'all', or names and numbers, separated by commas.")
    ] = "standard",
    triples: Annotated[
        int | None, typer.Option(min=0, help=f"How many of the triples to show. Default: {_TRIPLES}.")
    ] = None,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(help=f"One of {', '.join(_FORMATS)}. Default: the ending of the file, else terminal."),
    ] = None,
    output: Output = None,
) -> None:
    """Print or draw the cells in which two rule sets differ, how, and the triples they group differently."""
    chosen = chosen_format(format, output, _FORMATS)
    if every:
        if first is not None:
            named = shortened(" ".join(filter(None, (first, second))))
            raise ArgumentError(f"--all compares all rule sets; leave out either --all or {named}.")
        if triples is not None:
            raise ArgumentError("--triples needs two rule sets; leave it out with --all.")
        _put_distances(distances(operation, types), chosen, output)
        return
    if first is None:
        raise ArgumentError("Name two rule sets, as in supremum diff jax-x64 numpy, or give --all for all of them.")
    if second is None:
        name = get_rules(first).name
        other = "jax-x64" if name == "numpy" else "numpy"
        raise ArgumentError(f"Name a second rule set to compare {name} with, as in supremum diff {name} {other}.")
    compared = compare(first, second, operation, types)
    grouped = compare_groupings(first, second, compared.left.types)
    shown = _TRIPLES if triples is None else triples
    if chosen == "terminal":
        put_drawn(lambda console: _draw(console, compared, grouped, shown), output)
    elif chosen == "json":
        data = compared.data() | {"non_associative": grouped.counts, "non_associative_only_in": grouped.only}
        put_text(json.dumps(data, indent=2) + "\n", output)
    else:
        write = side_by_side_to_html if chosen == "html" else side_by_side_to_svg
        put_text(write(compared.side_by_side(grouped, shown=shown)), output)


def _put_distances(found: Distances, chosen: str, output: Path | None) -> None:
    if chosen == "terminal":
        put_drawn(lambda console: draw_distances(found, console), output)
    elif chosen == "json":
        put_text(json.dumps(found.data(), indent=2) + "\n", output)
    else:
        write = table_to_html if chosen == "html" else table_to_svg
        put_text(write(found.drawing()), output)


def _draw(console: Console, compared: Comparison, grouped: Groupings, triples: int) -> None:
    left, right = compared.left.rules, compared.right.rules
    console.print(f"{compared.left.operation}: {compared.summary}", style="bold")
    for how, count in compared.counts.items():
        console.print(f"  {count:5}  {compared.meaning(how)}", highlight=False)
    if compared.differing:
        # Both orders of a pair mostly differ in the same way; they share a line.
        order = {name: number for number, name in enumerate(compared.left.types)}
        columns = Table(box=SIMPLE_HEAD, show_edge=False)
        for heading in ("operands", left, right, "how"):
            columns.add_column(heading)
        for (a, b), how in compared.differing.items():
            both = a != b and compared.differing.get((b, a)) == how
            if both and order[a] > order[b]:
                continue
            results = [_shown(rules.decisions[a, b], how) for rules in (compared.left, compared.right)]
            columns.add_row(f"{a}, {b}" + (" and back" if both else ""), *results, how)
        console.print(columns)
    console.print("\nTriples whose dtype depends on the grouping:", style="bold")
    for rules, heading in grouped.headings().items():
        console.print(f"  {heading}", highlight=False)
        for a, b, c in grouped.only[rules][:triples]:
            console.print(f"    ({a}, {b}), {c}", highlight=False)


def _shown(decision: Decision, how: str) -> str:
    if decision.result is None:
        return f"[{COLOURS['refused']}]refused[/]"
    if how == "value":
        return told(decision)
    return f"[{COLOURS[as_format(decision.result.dtype).category]}]{decision.result.name}[/]"
