"""A table of short texts, as plain data, Markdown, a self-contained HTML page and SVG."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from supremum.render.page_parts import icon_link, page_part, sideways_hint
from supremum.render.svg import Drawing, number, palette_rules, text_width

_ROW, _LINE = 22.0, 14.0
_PADDING = 5.0
_LONGEST_PART, _LONGEST_SENTENCE = 4, 14
"""The most characters in one line of a cell; names of small floats are broken after their exponent and mantissa."""
_SIGN = 13.0
"""The width reserved for the symbol of a mark, which may come from any font."""
_BACKGROUND = ".{style} {{ background: {colour}; }}"
_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
{icon}
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


@dataclass(frozen=True, slots=True)
class Mark:
    """The reason why a cell is marked.

    Args:
        name: one word, such as `"wider"`.
        symbol: one character for narrow cells, for readers who do not see the colours.
        meaning: the description, such as `"wider in numpy"`.

    >>> wider = Mark("wider", "▲", "wider in numpy")
    >>> table = Table(
    ...     "sums", ("int8",), (("uint8", (Cell("int16", "integer", mark=wider),)),)
    ... )
    >>> mark_sentences(table)
    ['▲ 1 wider in numpy']
    """

    name: str
    symbol: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Args:
        text: the text.
        style: the class that sets its colour, a key of `PALETTE`.
        hint: a longer text, shown on pointing at the cell.
        mark: why the cell is marked; None if it is not.

    >>> wider = Mark("wider", "▲", "wider in numpy")
    >>> Cell("int16", "integer").marked, Cell("int32", "integer", mark=wider).marked
    (False, True)
    """

    text: str
    style: str
    hint: str = ""
    mark: Mark | None = None

    @property
    def marked(self) -> bool:
        """Whether the cell is marked."""
        return self.mark is not None


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table.

    Args:
        title: the title.
        columns: the headings, which are also the row labels of a square table.
        rows: pairs of row label and one cell per column.
        legend: pairs of class and meaning, in the order to show them.
        full_names: pairs of a short name in headings or cells and its full name.

    >>> table = Table(
    ...     "sums",
    ...     ("int8", "uint8"),
    ...     (("int8", (Cell("int8", "integer"), Cell("int16", "integer"))),),
    ... )
    >>> print(table_to_markdown(table), end="")
    **sums**
    <BLANKLINE>
    | | int8 | uint8 |
    |---|---|---|
    | **int8** | int8 | int16 |
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    legend: tuple[tuple[str, str], ...] = ()
    full_names: tuple[tuple[str, str], ...] = ()

    @property
    def marks(self) -> dict[Mark, int]:
        """The number of cells for each mark, the most frequent first."""
        return dict(Counter(cell.mark for _, cells in self.rows for cell in cells if cell.mark).most_common())


def table_to_markdown(table: Table) -> str:
    r"""The table in GitHub's Markdown.

    >>> from supremum.analysis import rule_table
    >>> print(
    ...     table_to_markdown(rule_table("torch", types="int8,float*").drawing()),
    ...     end="",
    ... )
    **result_type under torch**
    <BLANKLINE>
    | | i8 | f\* |
    |---|---|---|
    | **i8** | i8 | f32 |
    | **f\*** | f32 | f32 |
    <BLANKLINE>
    i8 int8, f\* float\* (weak), f32 float32
    """
    written = [f"**{_markdown(table.title)}**", ""]
    written.append("| |" + "|".join(f" {_markdown(column)} " for column in table.columns) + "|")
    written.append("|" + "---|" * (len(table.columns) + 1))
    for label, cells in table.rows:
        texts = (_markdown(cell.text, bold=cell.marked) for cell in cells)
        written.append(f"| {_markdown(label, bold=bool(label))} |" + "|".join(f" {text} " for text in texts) + "|")
    short = ", ".join(f"{short} {name}" for short, name in table.full_names)
    written += ["", _markdown(short)] if short else []
    return "\n".join(written) + "\n"


# Characters with a meaning in Markdown; an underscore has one at the edge of a word.
_SPECIAL = re.compile(r"[\\`*\[\]<>|&~]|(?<![^\W_])_|_(?![^\W_])")


def _markdown(text: str, *, bold: bool = False) -> str:
    escaped = _SPECIAL.sub(r"\\\g<0>", " ".join(text.splitlines()))
    return f"**{escaped}**" if bold else escaped


def framed(title: str, *parts: str) -> str:
    """Build a whole page.

    Args:
        title: the heading.
        parts: the HTML below the heading.
    """
    return _FRAME.format(
        title=escape(title),
        icon=icon_link(),
        style=page_part("page.css"),
        light=palette_rules(_BACKGROUND, 0),
        dark=palette_rules(_BACKGROUND, 1),
        body="\n".join(filter(None, parts)),
        script=page_part("sideways.js") + page_part("page.js"),
    )


def table_to_html(table: Table) -> str:
    """Build a self-contained page of one table, light and dark.

    Args:
        table: the table.

    >>> page = table_to_html(
    ...     Table("sums", ("int8",), (("int8", (Cell("int16", "integer", "why"),)),))
    ... )
    >>> page.startswith("<!doctype html>"), "http" in page
    (True, False)
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
    head = "".join(_html_heading("col", column, names) for column in table.columns)

    def row(label: str, cells: Sequence[Cell]) -> str:
        drawn = "".join(_html_cell(cell, cell.marked or cell is first) for cell in cells)
        return f"<tr>{_html_heading('row', label, names)}{drawn}</tr>"

    body = "\n".join(row(*labelled) for labelled in table.rows)
    hidden = ' class="unseen"' if caption is None else ""
    named = escape(table.title if caption is None else caption)
    return f"""<div>
{sideways_hint()}
<div class="scroll" role="region" aria-label="{named}" tabindex="0">
<table>
<caption{hidden}>{named}</caption>
<thead><tr><th></th>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>
</div>"""


def _mark_entry(mark: Mark, count: int) -> str:
    return f'<li data-mark="{mark.name}"><b aria-hidden="true">{mark.symbol}</b> {count} {escape(mark.meaning)}</li>'


def _html_heading(scope: str, text: str, names: dict[str, str]) -> str:
    shown = escape(text)
    if text in names:
        shown = f'<abbr title="{escape(names[text])}">{shown}</abbr>'
    return f'<th scope="{scope}">{shown}</th>'


def _html_cell(cell: Cell, reached: bool) -> str:
    attributes = f'class="{cell.style}{" marked" if cell.marked else ""}"'
    text = "<wbr>".join(map(escape, _broken(cell.text))) if _is_long_name(cell.text) else escape(cell.text)
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


def table_block(table: Table) -> Drawing:
    """The headings and cells of a table, for use in a picture; title and legend belong to the picture.

    Args:
        table: the table.
    """
    columns = zip(*(cells for _, cells in table.rows), strict=True)
    widths = [max(text_width(label) for label in ("", *(label for label, _ in table.rows))) + 2 * _PADDING]
    for heading, cells in zip(table.columns, columns, strict=True):
        widths.append(max(_widest(heading), *map(_room, cells)) + 2 * _PADDING)
    lefts = [sum(widths[:place]) for place in range(len(widths))]
    head = _height(table.columns)
    drawn = [_text(text, left, 0, head, "mono head") for text, left in zip(table.columns, lefts[1:], strict=True)]
    marked: list[str] = []
    top = head
    for label, cells in table.rows:
        height = _height(cell.text for cell in cells)
        drawn.append(_text(label, 0, top, height, "mono head", broken=False))
        for cell, left, width in zip(cells, lefts[1:], widths[1:], strict=True):
            (marked if cell.marked else drawn).append(_cell(cell, left, top, width, height))
        top += height
    # Marked cells come last, so that their outlines cover those of their neighbours.
    return Drawing(sum(widths), top, "\n".join(drawn + marked))


def _broken(text: str) -> list[str]:
    """The lines of a text: sentences are broken between words, and long names between letters with their digits.

    >>> _broken("f8_e4m3b11fnuz")
    ['f8_', 'e4m3', 'b11', 'fnuz']
    """
    if not _is_long_name(text):
        return textwrap.wrap(text, _LONGEST_SENTENCE if " " in text else len(text)) if text else [""]
    lines = [""]
    for part in re.findall(r"[^\d_]+\d*_*|\d+_*|_+", text):
        if lines[-1] and (lines[-1].endswith("_") or len(lines[-1] + part) > _LONGEST_PART):
            lines.append("")
        lines[-1] += part
    return lines


def _is_long_name(text: str) -> bool:
    return "_" in text and " " not in text


def _widest(text: str) -> float:
    return max(map(text_width, _broken(text)))


def _height(texts: Iterable[str]) -> float:
    return _ROW + _LINE * (max((len(_broken(text)) for text in texts), default=1) - 1)


def mark_sentences(table: Table) -> list[str]:
    """The meaning of each mark, and the number of cells that have it.

    Args:
        table: the table.
    """
    return [f"{mark.symbol} {count} {mark.meaning}" for mark, count in table.marks.items()]


def _room(cell: Cell) -> float:
    return _widest(cell.text) + (_SIGN if cell.mark else 0.0)


def _text(text: str, left: float, top: float, height: float, style: str = "mono", *, broken: bool = True) -> str:
    text_lines = _broken(text) if broken else [text]
    x, first = number(left + _PADDING), top + height / 2 + 4 - _LINE * (len(text_lines) - 1) / 2
    return "".join(
        f'<text class="{style}" x="{x}" y="{number(first + _LINE * place)}">{escape(line)}</text>'
        for place, line in enumerate(text_lines)
    )


def _cell(cell: Cell, left: float, top: float, width: float, height: float) -> str:
    hint = f"<title>{escape(cell.hint)}</title>" if cell.hint else ""
    box = f'x="{number(left)}" y="{number(top)}" width="{number(width)}" height="{number(height)}"'
    drawn = f'{hint}<rect class="box" {box}/>{_text(cell.text, left, top, height)}'
    if cell.mark is None:
        return f'<g class="{cell.style}">{drawn}</g>'
    x, y = number(left + width - _SIGN), number(top + height / 2 + 1)
    sign = f'<text class="sign" x="{x}" y="{y}">{escape(cell.mark.symbol)}</text>'
    return f'<g class="{cell.style} marked" data-mark="{cell.mark.name}">{drawn}{sign}</g>'
