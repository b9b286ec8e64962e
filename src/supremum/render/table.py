"""A square table of short texts, as Markdown and as a page of HTML."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Args:
        text: what it says.
        style: the class it is coloured by.
        hint: a longer text for those who point at it.
        marked: whether it stands out among the others.
    """

    text: str
    style: str
    hint: str = ""
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table.

    Args:
        title: what it is about.
        columns: the headings, which are also the row labels of a square table.
        rows: pairs of row label and one cell per column.
        legend: pairs of class and what it means, in the order to show them.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    legend: tuple[tuple[str, str], ...] = ()


# Pairs of light and dark background per class; text stays the page's own colour, which keeps contrast above 7 to 1.
PALETTE: dict[str, tuple[str, str]] = {
    "bool": ("#eceff1", "#37474f"),
    "integer": ("#dbeafe", "#1e3a5f"),
    "float": ("#dcfce7", "#14532d"),
    "complex": ("#f3e8ff", "#4c1d73"),
    "refused": ("#fee2e2", "#7f1d1d"),
}

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --page: #fff; --text: #111; --line: #bbb; }}
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 2rem; background: var(--page); color: var(--text); }}
.scroll {{ overflow: auto; max-height: 85vh; }}
table {{ border-collapse: collapse; font: 12px/1.2 ui-monospace, monospace; }}
th, td {{ border: 1px solid var(--line); padding: .3em .5em; text-align: left; white-space: nowrap; }}
thead th {{ position: sticky; top: 0; background: var(--page); }}
tbody th {{ position: sticky; left: 0; background: var(--page); }}
.marked {{ font-weight: bold; outline: 2px solid var(--text); outline-offset: -3px; }}
.legend span {{ padding: .15em .6em; margin-right: .5em; border: 1px solid var(--line); }}
{light}
@media (prefers-color-scheme: dark) {{
:root {{ --page: #16181d; --text: #eee; --line: #555; }}
{dark}
}}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="legend">{legend}</p>
<div class="scroll">
<table>
<thead><tr><th></th>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>
</body>
</html>
"""


def to_markdown(table: Table) -> str:
    """The table in GitHub's Markdown."""
    lines = [f"**{table.title}**", ""]
    lines.append("| |" + "|".join(f" {_markdown(column)} " for column in table.columns) + "|")
    lines.append("|" + "---|" * (len(table.columns) + 1))
    for label, cells in table.rows:
        named = f"**{_markdown(label)}**" if label else ""
        lines.append(f"| {named} |" + "|".join(f" {_marked(cell)} " for cell in cells) + "|")
    return "\n".join(lines) + "\n"


def _markdown(text: str) -> str:
    return text.replace("*", r"\*")


def _marked(cell: Cell) -> str:
    text = _markdown(cell.text)
    return f"**{text}**" if cell.marked else text


def to_html(table: Table) -> str:
    """The table as one self-contained page, light and dark."""
    body = "\n".join(
        f'<tr><th scope="row">{escape(label)}</th>{"".join(map(_html_cell, cells))}</tr>' for label, cells in table.rows
    )
    return _PAGE.format(
        title=escape(table.title),
        light="\n".join(f".{style} {{ background: {light}; }}" for style, (light, _) in PALETTE.items()),
        dark="\n".join(f".{style} {{ background: {dark}; }}" for style, (_, dark) in PALETTE.items()),
        legend="".join(f'<span class="{style}">{escape(meaning)}</span>' for style, meaning in table.legend),
        head="".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns),
        body=body,
    )


def _html_cell(cell: Cell) -> str:
    hint = f' title="{escape(cell.hint)}"' if cell.hint else ""
    marked = " marked" if cell.marked else ""
    return f'<td class="{cell.style}{marked}"{hint}>{escape(cell.text)}</td>'
