"""Self-contained HTML pages of tables, light and dark."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from supremum.render.svg import PALETTE
from supremum.render.table import Cell, Mark, Table

_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}{light}
@media (prefers-color-scheme: dark) {{
{dark}
}}
</style>
<noscript><style>td:hover > .hint, td:focus > .hint {{ display: block; }}</style></noscript>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
<script>
{script}</script>
</body>
</html>
"""


def framed(title: str, *parts: str) -> str:
    """Build a whole page.

    Args:
        title: the heading.
        parts: the HTML below the heading.
    """
    return _FRAME.format(
        title=escape(title),
        style=_resource("page.css"),
        light=_backgrounds(0),
        dark=_backgrounds(1),
        body="\n".join(filter(None, parts)),
        script=_resource("page.js"),
    )


def table_to_html(table: Table) -> str:
    """Build a self-contained page of one table, light and dark.

    Args:
        table: the table.
    """
    return framed(table.title, key(table), grid(table))


def key(*tables: Table) -> str:
    """The key to colours, marks and short names, and how to reach the explanations.

    Args:
        tables: the tables, all with the same marks.
    """
    entries = dict.fromkeys(entry for table in tables for entry in table.legend)
    styles = "".join(f'<li class="{style}">{escape(meaning)}</li>' for style, meaning in entries)
    marks = "".join(_mark_entry(mark, count) for mark, count in tables[0].marks.items())
    names = dict(pair for table in tables for pair in table.full_names)
    short = ", ".join(f"<span><b>{escape(text)}</b> {escape(name)}</span>" for text, name in names.items())
    way = "Tab goes to the cells that differ, arrow keys to all." if marks else "Arrow keys go from cell to cell."
    explained = any(cell.hint for table in tables for _, cells in table.rows for cell in cells)
    parts = (
        f'<ul class="marks" aria-label="Cells that differ">{marks}</ul>' if marks else "",
        f'<ul class="legend" aria-label="Colours">{styles}</ul>' if styles else "",
        f'<p class="help">Point at a cell, or tap it, for its explanation. {way}</p>' if explained else "",
        f'<p class="names">{short}</p>' if short else "",
    )
    return "\n".join(filter(None, parts))


def grid(table: Table, caption: str | None = None) -> str:
    """A table in a scrollable area.

    Args:
        table: the table.
        caption: the visible caption; None if the heading of the page is enough, for a caption for screen readers only.
    """
    names = dict(table.full_names)
    # The Tab key reaches the marked cells, or else the first one with an explanation.
    first = None if table.marks else next((cell for _, cells in table.rows for cell in cells if cell.hint), None)
    head = "".join(_heading("col", column, names) for column in table.columns)
    body = "\n".join(
        f"<tr>{_heading('row', label, names)}{''.join(_cell(cell, cell.marked or cell is first) for cell in row)}</tr>"
        for label, row in table.rows
    )
    hidden = ' class="unseen"' if caption is None else ""
    named = escape(table.title if caption is None else caption)
    return f"""<div class="scroll" role="region" aria-label="{named}" tabindex="0">
<table{' class="upright"' if table.upright else ""}>
<caption{hidden}>{named}</caption>
<thead><tr><th></th>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>"""


def _mark_entry(mark: Mark, count: int) -> str:
    return f'<li data-mark="{mark.name}"><b aria-hidden="true">{mark.symbol}</b> {count} {escape(mark.meaning)}</li>'


def _heading(scope: str, text: str, names: dict[str, str]) -> str:
    shown = escape(text)
    if text in names:
        shown = f'<abbr title="{escape(names[text])}">{shown}</abbr>'
    return f'<th scope="{scope}">{shown}</th>'


def _cell(cell: Cell, reached: bool) -> str:
    attributes = f'class="{cell.style}{" marked" if cell.marked else ""}"'
    text = escape(cell.text)
    if cell.mark:
        attributes += f' data-mark="{cell.mark.name}"'
        text += (
            f'<span class="mark" aria-hidden="true">{cell.mark.symbol}</span>'
            f'<span class="unseen">, {escape(cell.mark.meaning)}</span>'
        )
    if cell.hint:
        attributes += f' tabindex="{0 if reached else -1}"'
        text += f'<span class="hint">{escape(cell.hint)}</span>'
    return f"<td {attributes}>{text}</td>"


def _backgrounds(theme: int) -> str:
    return "\n".join(f".{style} {{ background: {colours[theme]}; }}" for style, colours in PALETTE.items())


@cache
def _resource(name: str) -> str:
    return files("supremum.render").joinpath(name).read_text(encoding="utf-8")
