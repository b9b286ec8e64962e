"""The commands about rule sets: `supremum explain`, `rules`, `table`, `diff`, `lattice` and `explore`."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from supremum import analysis
from supremum.cli.exit_codes import loading
from supremum.cli.output import (
    STANDARD_OUTPUT,
    Output,
    chosen_format,
    folding_table,
    format_option,
    json_text,
    put_drawn,
    put_text,
)
from supremum.errors import ArgumentError, printable, shortened
from supremum.operands import parse_operand
from supremum.operations import as_operation
from supremum.promotion import explain as explain_decision
from supremum.render import (
    Table,
    side_by_side_to_html,
    side_by_side_to_svg,
    table_to_html,
    table_to_markdown,
)
from supremum.rules import HOMES, get_rules, rule_names

_TEXT_FORMATS = ("terminal", "json")
_TABLE_FORMATS = ("terminal", "json", "markdown", "html")
_DIFF_FORMATS = ("terminal", "json", "html", "svg")
_LATTICE_FORMATS = ("svg", "dot")
_TRIPLES = 5
_TWO_OPERANDS: Any = typer.Option(metavar="NAME", help="An operation of two operands, such as divide.")
# ANSI colours follow the terminal's theme; the legend explains them.
_COLOURS = {
    "bool": "white", "integer": "cyan", "float": "green", "complex": "magenta", "changed": "yellow", "refused": "dim",
}  # fmt: skip


def explain(
    operands: Annotated[
        list[str],
        typer.Argument(
            metavar="OPERAND",
            help="Dtypes (int8 or i8; i8[] for a 0-d array), weak kinds (float*), Python numbers (256, 1.5, 1j, True).",
            show_default=False,
        ),
    ],
    operation: Annotated[str | None, typer.Option(metavar="NAME", help="The operation, such as add.")] = None,
    into: Annotated[
        str | None,
        typer.Option(metavar="DTYPE", help="What the result is written into, as by +=: an array of this dtype."),
    ] = None,
    rules: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A rule set; repeat for several, 'all' for all.")
    ] = None,
    format: Annotated[str | None, format_option(_TEXT_FORMATS)] = None,  # noqa: A002
    output: Output = None,
) -> None:
    """Explain the dtype of a result, or why it is refused.

    JSON has the decisions in order, each as `Decision.to_dict` makes it.
    """
    wanted = chosen_format(format, output, _TEXT_FORMATS)
    seen = [parse_operand(text) for text in operands]
    names = list(HOMES) if rules == ["all"] else (rules or [None])
    target = None if into is None else parse_operand(into)
    decisions = [explain_decision(*seen, operation=operation, into=target, rules=name) for name in names]
    if wanted == "json":
        put_text(json_text({"decisions": [decision.to_dict() for decision in decisions]}), output)
    else:
        put_text("\n\n".join(map(str, decisions)) + "\n", output)


def rules(
    format: Annotated[str | None, format_option(_TEXT_FORMATS)] = None,  # noqa: A002
    output: Output = None,
) -> None:
    """List the rule sets and their sources."""
    wanted = chosen_format(format, output, _TEXT_FORMATS)
    sets = {name: get_rules(name) for name in rule_names()}
    if wanted == "json":
        data = [{"name": name, "summary": each.summary, "source": each.source} for name, each in sets.items()]
        put_text(json_text(data), output)
        return
    table = folding_table("name", "whose rules", "source")
    for name, each in sets.items():
        summary = each.summary if name == each.name else f"what JAX's own flags say, now {each.name}"
        table.add_row(name, summary, each.source)
    put_drawn(lambda console: console.print(table), output)


def table(
    rules: Annotated[str | None, typer.Option(metavar="NAME", help="The rule set. Default: jax.")] = None,
    operation: Annotated[str | None, _TWO_OPERANDS] = None,
    against: Annotated[
        str | None, typer.Option(metavar="NAME", help="Mark the cells that differ from this rule set's.")
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(
            metavar="TYPES",
            help="'standard', 'all', or names and numbers, separated by commas. Default: standard, and all for json.",
        ),
    ] = None,
    format: Annotated[str | None, format_option(_TABLE_FORMATS)] = None,  # noqa: A002
    output: Output = None,
) -> None:
    """Print the dtypes to which all pairs of types promote."""
    wanted = chosen_format(format, output, _TABLE_FORMATS)
    listed = types if types is not None else "all" if wanted == "json" else "standard"
    compared = None if against is None else analysis.compare(rules, against, operation, listed)
    decided = analysis.rule_table(rules, operation, listed) if compared is None else compared.left
    source = decided if compared is None else compared
    if wanted == "terminal":
        other = None if compared is None else compared.right.rules
        put_drawn(lambda console: _draw_table(source.drawing(), console, other), output)
    elif wanted == "json":
        data = decided.data()
        if compared is not None:
            data |= {"against": compared.right.data(), "differing": [list(pair) for pair in compared.differing]}
        put_text(json_text(data), output)
    else:
        write = table_to_markdown if wanted == "markdown" else table_to_html
        put_text(write(source.drawing()), output)


def diff(
    first: Annotated[str | None, typer.Argument(metavar="RULES", help="A rule set.", show_default=False)] = None,
    second: Annotated[
        str | None, typer.Argument(metavar="RULES", help="A second rule set.", show_default=False)
    ] = None,
    operation: Annotated[str | None, _TWO_OPERANDS] = None,
    types: Annotated[
        str, typer.Option(metavar="TYPES", help="'standard', 'all', or names and numbers, separated by commas.")
    ] = "standard",
    triples: Annotated[
        int | None, typer.Option(min=0, help=f"How many of the triples to show. Default: {_TRIPLES}.")
    ] = None,
    format: Annotated[str | None, format_option(_DIFF_FORMATS)] = None,  # noqa: A002
    output: Output = None,
) -> None:
    """Show where and how two rule sets differ.

    These are the cells of their tables, and the triples of types whose dtype depends on the grouping.
    """
    wanted = chosen_format(format, output, _DIFF_FORMATS)
    if first is None:
        raise ArgumentError("Name two rule sets, as in supremum diff jax-x64 numpy.")
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
    rules: Annotated[str | None, typer.Option(metavar="NAME", help="The rule set. Default: jax.")] = None,
    types: Annotated[
        str, typer.Option(metavar="TYPES", help="'standard', 'all', or names separated by commas.")
    ] = "all",
    path: Annotated[
        str | None, typer.Option(metavar="TYPE TYPE...", help="Highlight the lines from these types to their result.")
    ] = None,
    format: Annotated[str | None, format_option(_LATTICE_FORMATS)] = None,  # noqa: A002
    output: Output = None,
) -> None:
    """Draw the order of a rule set's types.

    This is its Hasse diagram. If the rule set is not a lattice, the error says why.
    """
    if others and path is None:
        raise ArgumentError(f"Types must come after an option such as --path, got {shortened(' '.join(others))} alone.")
    names = [name for text in (path or "", *(others or ())) for name in text.split(",") if name]
    wanted = chosen_format(format, output, _LATTICE_FORMATS)
    draw = analysis.lattice_svg if wanted == "svg" else analysis.lattice_dot
    put_text(draw(rules, types=types, path=names), output)


def explore(
    output: Output = Path("explorer.html"),
    operation: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="An operation of two operands to offer; repeat for several. Default: the most common ones.",
        ),
    ] = None,
) -> None:
    """Write an interactive page about all rule sets.

    The page shows, compares and explains their decisions. It is one file that works offline. In a terminal, it also
    opens in the browser.
    """
    chosen_format(None, output, ("html",))
    with loading():  # this takes a while, and most commands do not need it
        from supremum.explorer import COMMON, STEPS, explorer_page

    operations = tuple(dict.fromkeys(as_operation(name).name for name in operation or COMMON))
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("asking", total=STEPS)
        page = explorer_page(
            lambda rules: progress.update(task, advance=1, description=f"asked {rules}"), operations=operations
        )
    put_text(page, output)
    if output is None or output == STANDARD_OUTPUT:
        return
    typer.echo(f"{printable(str(output))}: {len(page.encode()):,} bytes")
    if sys.stdout.isatty():
        webbrowser.open(output.resolve().as_uri())


def _draw_table(drawn: Table, console: Console, against: str | None) -> None:
    """Draw a table on a console with a legend; marked cells are reversed, and columns that do not fit come below.

    Args:
        drawn: the table.
        console: the console.
        against: the rule set from which the marked cells differ; None for no marks.
    """
    texts = [[label, *(cell.text for cell in cells)] for label, cells in drawn.rows]
    widths = [max(map(len, column)) for column in zip(["", *drawn.columns], *texts, strict=True)]
    lines = [Text(drawn.title, style="bold")]
    # Without colours, a mark needs a character.
    mark = "" if console.color_system or against is None else "!"
    for columns in _fitting(widths, console.width if console.is_terminal else sys.maxsize):
        head = (f"{drawn.columns[place]:<{widths[place + 1]}}" for place in columns)
        lines += [Text(), Text(" ".join(("".ljust(widths[0]), *head)), style="bold")]
        for label, cells in drawn.rows:
            line = Text(f"{label:<{widths[0]}}", style="bold")
            for place in columns:
                cell = cells[place]
                line.append(mark if mark and cell.marked else " ")
                style = f"not bold {_COLOURS[cell.style]}{' reverse' if cell.marked else ''}"
                line.append(f"{cell.text:<{widths[place + 1]}}", style=style)
            lines.append(line)
    lines += [Text(), Text("  ").join(Text(meaning, style=_COLOURS[style]) for style, meaning in drawn.legend)]
    lines.append(_names(drawn))
    if mark:
        lines.append(Text(f"! differs from {against}"))
    for line in lines:
        line.rstrip()
        console.print(line, soft_wrap=True, highlight=False)


def _names(drawn: Table) -> Text:
    """The line that explains the short names of a table."""
    return Text(", ".join(f"{short} {name}" for short, name in drawn.full_names), style="dim")


def _fitting(widths: Sequence[int], room: int) -> list[range]:
    """The columns of a table in groups that fit next to the row labels.

    Args:
        widths: the width of the row labels, and of each column.
        room: the width of the console.
    """
    groups: list[range] = []
    start, used = 0, widths[0]
    for place, width in enumerate(widths[1:]):
        if used + 1 + width > room and place > start:
            groups.append(range(start, place))
            start, used = place, widths[0]
        used += 1 + width
    return [*groups, range(start, len(widths) - 1)]


def _draw_comparison(console: Console, compared: analysis.Comparison, grouped: analysis.Groupings, shown: int) -> None:
    left, right = compared.left.rules, compared.right.rules
    console.print(f"{compared.left.operation}: {compared.summary}", style="bold")
    for how, count in compared.counts.items():
        console.print(f"  {count:5}  {compared.meaning(how)}", highlight=False)
    if compared.differing:
        # Both orders of a pair mostly differ in the same way; they share a line.
        order = {name: number for number, name in enumerate(compared.left.types)}
        columns = folding_table("operands", left, right, "how")
        for (a, b), how in compared.differing.items():
            both = a != b and compared.differing.get((b, a)) == how
            if both and order[a] > order[b]:
                continue
            decisions = [rules.decisions[a, b] for rules in (compared.left, compared.right)]
            results = [Text(analysis.result_text(each), style=_COLOURS[analysis.style_of(each)]) for each in decisions]
            pair = f"{analysis.short_name(a)}, {analysis.short_name(b)}"
            columns.add_row(pair + (" and back" if both else ""), *results, how)
        console.print(columns)
        console.print(_names(compared.left.drawing()), highlight=False)
    console.print("\nTriples whose dtype depends on the grouping:", style="bold")
    for rules, heading in grouped.headings().items():
        console.print(f"  {heading}", highlight=False)
        for triple in grouped.written(rules, shown):
            console.print(f"    {triple}", highlight=False)
