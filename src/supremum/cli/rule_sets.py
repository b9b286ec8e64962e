"""The commands about rule sets: `supremum explain`, `rules`, `table`, `diff`, `lattice` and `explore`."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from supremum import analysis
from supremum.argument_checks import chosen
from supremum.cli.exit_codes import loading
from supremum.cli.output import STANDARD_OUTPUT, Output, chosen_format, json_text, put_bytes, put_drawn, put_text
from supremum.decisions import Decision
from supremum.errors import ArgumentError, shortened
from supremum.formats import as_format
from supremum.operands import parse_operand
from supremum.operations import as_operation
from supremum.promotion import explain as explain_decision
from supremum.render import side_by_side_to_html, side_by_side_to_svg, table_to_html, table_to_markdown, table_to_svg
from supremum.rules import HOMES, get_rules, rule_names

_TABLE_FORMATS = ("terminal", "json", "markdown", "html")
_DIFF_FORMATS = ("terminal", "json", "html", "svg")
_LATTICE_FORMATS = ("svg", "png", "dot")
_TRIPLES = 5
# ANSI colours follow the terminal's theme; the legend explains them.
_COLOURS = {"bool": "white", "integer": "cyan", "float": "green", "complex": "magenta", "refused": "bold red"}
_STEP_COLOURS = {"step0": "dim", "step1": "", "step2": "cyan", "step3": "green", "step4": "yellow", "step5": "bold red"}


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
    chosen("format", format, ("terminal", "json"))
    sets = {name: get_rules(name) for name in rule_names()}
    if format == "json":
        data = [{"name": name, "summary": each.summary, "source": each.source} for name, each in sets.items()]
        typer.echo(json_text(data), nl=False)
        return
    table = Table("name", box=SIMPLE_HEAD, show_edge=False)
    table.add_column("whose rules", overflow="fold", ratio=3)
    table.add_column("source", overflow="fold", ratio=2)
    for name, each in sets.items():
        summary = each.summary if name == each.name else f"what JAX's own flags say, now {each.name}"
        table.add_row(name, summary, each.source)
    Console().print(table)


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
    format: Annotated[str, typer.Option(help=f"One of {', '.join(_TABLE_FORMATS)}.")] = "terminal",  # noqa: A002
    output: Output = None,
) -> None:
    """Print the type that every pair of types promotes to under a framework's rules."""
    chosen("format", format, _TABLE_FORMATS)
    if against is None and (weak_as_64_bit or unknown):
        raise ArgumentError("--weak-as-64-bit and --unknown need --against, because they apply to that rule set.")
    listed = types if types is not None else "all" if format == "json" else "standard"
    compared = None
    if against is not None:
        compared = analysis.compare(
            rules, against, operation, listed, weak_as_64_bit=weak_as_64_bit, unknown=unknown or ()
        )
    decided = analysis.rule_table(rules, operation, listed) if compared is None else compared.left
    if format == "terminal":
        put_drawn(lambda console: _draw_table(decided, console, compared), output)
    elif format == "json":
        data = decided.data()
        if compared is not None:
            data |= {"against": compared.right.data(), "differing": [list(pair) for pair in compared.differing]}
        put_text(json_text(data), output)
    else:
        write = table_to_markdown if format == "markdown" else table_to_html
        put_text(write(decided.drawing() if compared is None else compared.drawing()), output)


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
        typer.Option(help=f"One of {', '.join(_DIFF_FORMATS)}. Default: the ending of the file, else terminal."),
    ] = None,
    output: Output = None,
) -> None:
    """Print or draw the cells in which two rule sets differ, how, and the triples they group differently."""
    wanted = chosen_format(format, output, _DIFF_FORMATS)
    if every:
        if first is not None:
            named = shortened(" ".join(filter(None, (first, second))))
            raise ArgumentError(f"--all compares all rule sets; leave out either --all or {named}.")
        if triples is not None:
            raise ArgumentError("--triples needs two rule sets; leave it out with --all.")
        _put_distances(analysis.distances(operation, types), wanted, output)
        return
    if first is None:
        raise ArgumentError("Name two rule sets, as in supremum diff jax-x64 numpy, or give --all for all of them.")
    if second is None:
        name = get_rules(first).name
        other = "jax-x64" if name == "numpy" else "numpy"
        raise ArgumentError(f"Name a second rule set to compare {name} with, as in supremum diff {name} {other}.")
    compared = analysis.compare(first, second, operation, types)
    grouped = analysis.compare_groupings(first, second, compared.left.types)
    shown = _TRIPLES if triples is None else triples
    if wanted == "terminal":
        put_drawn(lambda console: _draw_comparison(console, compared, grouped, shown), output)
    elif wanted == "json":
        data = compared.data() | {"non_associative": grouped.counts, "non_associative_only_in": grouped.only}
        put_text(json_text(data), output)
    else:
        write = side_by_side_to_html if wanted == "html" else side_by_side_to_svg
        put_text(write(compared.side_by_side(grouped, shown=shown)), output)


def lattice(
    others: Annotated[list[str] | None, typer.Argument(metavar="[TYPE]...", help="More types for --path.")] = None,
    rules: Annotated[str | None, typer.Option(help="Name of the rule set. Default: the rules in force, jax.")] = None,
    types: Annotated[str, typer.Option(help="'standard', 'all', or names separated by commas.")] = "all",
    path: Annotated[
        str | None, typer.Option(metavar="TYPE TYPE...", help="Highlight the lines from these types to their result.")
    ] = None,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(help=f"One of {', '.join(_LATTICE_FORMATS)}. Default: the ending of the output, else svg."),
    ] = None,
    output: Output = None,
) -> None:
    """Draw the Hasse diagram of a framework's rules, or if they are not a lattice, their table and the reason."""
    if others and path is None:
        raise ArgumentError(f"Types must come after an option such as --path, got {shortened(' '.join(others))} alone.")
    names = [name for text in (path or "", *(others or ())) for name in text.split(",") if name]
    ending = output.suffix[1:].lower() if output is not None else ""
    wanted = chosen("format", format or ending or "svg", _LATTICE_FORMATS)
    if wanted == "png":
        if output is None:
            raise ArgumentError("A PNG needs an output, such as -o lattice.png, or -o - for standard output.")
        put_bytes(analysis.lattice_png(rules, types=types, path=names), output)
    else:
        draw = analysis.lattice_svg if wanted == "svg" else analysis.lattice_dot
        put_text(draw(rules, types=types, path=names), output)


def explore(
    output: Output = Path("explorer.html"),
    operation: Annotated[
        list[str] | None, typer.Option(help="An operation of two operands to offer; repeat for several. Default: all.")
    ] = None,
) -> None:
    """Write a self-contained page that shows, compares and explains the decisions of every rule set.

    In a terminal, the page also opens in the browser.
    """
    with loading():  # this takes a while, and most commands do not need it
        from supremum.explorer import BINARY, finished_page

    operations = tuple(dict.fromkeys(as_operation(name).name for name in operation or BINARY))
    finished = finished_page()
    is_finished = operations == BINARY and finished.is_file()
    page = finished.read_text("utf-8") if is_finished else _computed_page(operations)
    put_text(page, output)
    if output is None or output == STANDARD_OUTPUT:
        return
    typer.echo(f"{output}: {len(page.encode()):,} bytes")
    if sys.stdout.isatty():
        webbrowser.open(output.resolve().as_uri())


def _computed_page(operations: Sequence[str]) -> str:
    from supremum.explorer import STEPS, explorer_page

    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<20}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("asking", total=STEPS)

        def show(rules: str) -> None:
            progress.update(task, advance=1, description=f"asked {rules}")

        return explorer_page(show, operations=operations, processes=min(os.cpu_count() or 1, STEPS))


def _draw_table(decided: analysis.RuleTable, console: Console, compared: analysis.Comparison | None) -> None:
    """Draw a table on a console, in short codes with a legend; marked cells are reversed.

    Args:
        decided: the table.
        console: the console.
        compared: a comparison, to mark the cells that differ; None for no marks.
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
            style = f"not bold {_COLOURS[cell.style]}{' reverse' if cell.marked else ''}"
            line.append(mark if mark and cell.marked else " ")
            line.append(f"{cell.text:<{width}}", style=style)
        lines.append(line)
    lines += [Text(), Text("  ").join(Text(meaning, style=_COLOURS[style]) for style, meaning in drawn.legend)]
    codes = [f"{analysis.short_name(name)} {name}" for name in decided.types if analysis.short_name(name) != name]
    lines.append(Text(", ".join(codes), style="dim"))
    if mark:
        lines.append(Text(f"! differs from {compared.right.rules}" if compared is not None else ""))
    for line in lines:
        line.rstrip()
        console.print(line, soft_wrap=True, highlight=False)


def _put_distances(found: analysis.Distances, wanted: str, output: Path | None) -> None:
    if wanted == "terminal":
        put_drawn(lambda console: _draw_distances(found, console), output)
    elif wanted == "json":
        put_text(json_text(found.data()), output)
    else:
        write = table_to_html if wanted == "html" else table_to_svg
        put_text(write(found.drawing()), output)


def _draw_distances(found: analysis.Distances, console: Console) -> None:
    """Draw the matrix on a console as a triangle, like the distances between towns on a map.

    Each name ends its row and heads its column, so that there is room for all names.

    Args:
        found: the distances.
        console: the console.
    """
    drawn = found.drawing()
    width = max(len(cell.text) for _, cells in drawn.rows for cell in cells)
    lines = [Text(drawn.title, style="bold"), Text("Each name ends its row and heads its column."), Text()]
    for place, (name, cells) in enumerate(drawn.rows):
        texts = ((f"{cell.text:>{width}} ", _STEP_COLOURS[cell.style]) for cell in cells[:place])
        lines.append(Text.assemble(*texts, (name, "bold")))
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def _draw_comparison(console: Console, compared: analysis.Comparison, grouped: analysis.Groupings, shown: int) -> None:
    left, right = compared.left.rules, compared.right.rules
    console.print(f"{compared.left.operation}: {compared.summary}", style="bold")
    for how, count in compared.counts.items():
        console.print(f"  {count:5}  {compared.meaning(how)}", highlight=False)
    if compared.differing:
        # Both orders of a pair mostly differ in the same way; they share a line.
        order = {name: number for number, name in enumerate(compared.left.types)}
        columns = Table("operands", left, right, "how", box=SIMPLE_HEAD, show_edge=False)
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
        for a, b, c in grouped.only[rules][:shown]:
            console.print(f"    ({a}, {b}), {c}", highlight=False)


def _shown(decision: Decision, how: str) -> str:
    if decision.result is None:
        return f"[{_COLOURS['refused']}]refused[/]"
    if how == "value":
        return analysis.told(decision)
    return f"[{_COLOURS[as_format(decision.result.dtype).category]}]{decision.result.name}[/]"
