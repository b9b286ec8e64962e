"""`supremum diff`: two rule sets side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from supremum.cli.output import checked_format, put_drawn, put_text
from supremum.cli.table import COLOURS
from supremum.comparisons import Comparison, compare, groupings
from supremum.decisions import Decision
from supremum.formats import as_format
from supremum.rules import get_rules

_FORMATS = ("terminal", "json")
_MEANINGS = {
    "refused": "refused by the second",
    "accepted": "refused by the first",
    "kind": "another kind of number",
    "wider": "wider in the second",
    "narrower": "narrower in the second",
    "other": "another format of the same width",
}


def diff(
    first: Annotated[str, typer.Argument(help="Name of a rule set.", show_default=False)],
    second: Annotated[str, typer.Argument(help="Name of another.", show_default=False)],
    operation: Annotated[str | None, typer.Option(help="Name of an operation of two operands.")] = None,
    types: Annotated[str, typer.Option(help="'standard', 'all', or names with commas between.")] = "standard",
    triples: Annotated[int, typer.Option(min=0, help="How many of the triples to show.")] = 5,
    format: Annotated[str, typer.Option(help=f"One of {', '.join(_FORMATS)}.")] = "terminal",  # noqa: A002
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file instead.")] = None,
) -> None:
    """Print the cells in which two rule sets differ, how, and the triples they group differently."""
    checked_format(format, _FORMATS)
    compared = compare(first, second, operation, types)
    names = compared.left.types
    left, right = (set(groupings(get_rules(rules), names)) for rules in (first, second))
    only = {compared.left.rules: sorted(left - right), compared.right.rules: sorted(right - left)}
    if format == "json":
        counts = {compared.left.rules: len(left), compared.right.rules: len(right)}
        data = compared.data() | {"non_associative": counts, "non_associative_only_in": only}
        put_text(json.dumps(data, indent=2) + "\n", output)
    else:
        totals = {compared.left.rules: len(left), compared.right.rules: len(right)}
        put_drawn(lambda console: _draw(console, compared, totals, only, triples), output)


def _draw(
    console: Console,
    compared: Comparison,
    totals: dict[str, int],
    only: dict[str, list[tuple[str, str, str]]],
    triples: int,
) -> None:
    left, right = compared.left.rules, compared.right.rules
    cells = len(compared.left.decisions)
    console.print(f"{compared.left.operation}: {len(compared.differing)} of {cells} cells differ", style="bold")
    for how, count in compared.counts.items():
        console.print(f"  {count:5}  {_MEANINGS[how]}", highlight=False)
    if compared.differing:
        # Both orders of a pair mostly differ alike: one line says so for both.
        order = {name: number for number, name in enumerate(compared.left.types)}
        table = Table(box=SIMPLE_HEAD, show_edge=False)
        for heading in ("operands", left, right, "how"):
            table.add_column(heading)
        for (a, b), how in compared.differing.items():
            both = a != b and compared.differing.get((b, a)) == how
            if both and order[a] > order[b]:
                continue
            shown = [_shown(rules.decisions[a, b]) for rules in (compared.left, compared.right)]
            table.add_row(f"{a}, {b}" + (" and back" if both else ""), *shown, how)
        console.print(table)
    console.print("\nTriples whose dtype depends on the grouping:", style="bold")
    for rules, count in totals.items():
        alone = only[rules]
        console.print(f"  {rules}: {count}, {len(alone)} of them only here", highlight=False)
        for a, b, c in alone[:triples]:
            console.print(f"    ({a}, {b}), {c}", highlight=False)


def _shown(decision: Decision) -> str:
    if decision.result is None:
        return f"[{COLOURS['refused']}]refused[/]"
    return f"[{COLOURS[as_format(decision.result.dtype).category]}]{decision.result.name}[/]"
