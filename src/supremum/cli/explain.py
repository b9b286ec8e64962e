"""`supremum explain`, which explains a promotion, and `supremum rules`, which lists the rule sets."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from supremum.cli.output import checked_format
from supremum.operands import parse_operand
from supremum.promotion import explain as explain_decision
from supremum.rules import HOMES, get_rules, rule_names


def explain(
    operands: Annotated[
        list[str],
        typer.Argument(
            help="Dtypes (int8; int8[] for a 0-d array), weak kinds (float*) or Python numbers (256, 1.5, 1j, True).",
            show_default=False,
        ),
    ],
    operation: Annotated[str | None, typer.Option(help="Name of the operation.")] = None,
    into: Annotated[
        str | None, typer.Option(help="What the result is written into, as by +=: an array of this dtype.")
    ] = None,
    rules: Annotated[
        list[str] | None, typer.Option(help="Name of a rule set; repeat for several, 'all' for all.")
    ] = None,
) -> None:
    """Explain which dtype operands promote to, or why the rules refuse them and what to do."""
    seen = [parse_operand(text) for text in operands]
    names = list(HOMES) if rules == ["all"] else (rules or [None])
    target = None if into is None else parse_operand(into)
    decisions = [explain_decision(*seen, operation=operation, into=target, rules=name) for name in names]
    typer.echo("\n\n".join(map(str, decisions)))


def rules(
    format: Annotated[str, typer.Option(help="One of terminal, json.")] = "terminal",  # noqa: A002
) -> None:
    """List the rule sets and their sources."""
    checked_format(format, ("terminal", "json"))
    sets = {name: get_rules(name) for name in rule_names()}
    if format == "json":
        data = [{"name": name, "summary": each.summary, "source": each.source} for name, each in sets.items()]
        typer.echo(json.dumps(data, indent=2))
        return
    table = Table("name", box=SIMPLE_HEAD, show_edge=False)
    table.add_column("whose rules", overflow="fold", ratio=3)
    table.add_column("source", overflow="fold", ratio=2)
    for name, each in sets.items():
        summary = each.summary if name == each.name else f"what JAX's own flags say, now {each.name}"
        table.add_row(name, summary, each.source)
    Console().print(table)
