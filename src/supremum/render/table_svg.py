"""A table of short texts as a picture."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from supremum.render.svg import Block, number, picture, text_width
from supremum.render.table import Cell, Table

_ROW = 22.0
_PADDING = 7.0


def table_block(table: Table) -> Block:
    """The headings and cells of a table, to be put into a picture; title and legend are the picture's.

    Args:
        table: the table.
    """
    texts = [["", *table.columns], *([label, *(cell.text for cell in cells)] for label, cells in table.rows)]
    widths = [max(map(text_width, column)) + 2 * _PADDING for column in zip(*texts, strict=True)]
    lefts = [sum(widths[:place]) for place in range(len(widths))]
    drawn = [_heading(text, left, 0) for text, left in zip(table.columns, lefts[1:], strict=True)]
    marked: list[str] = []
    for place, (label, cells) in enumerate(table.rows, 1):
        drawn.append(_heading(label, 0, place * _ROW))
        for cell, left, width in zip(cells, lefts[1:], widths[1:], strict=True):
            (marked if cell.marked else drawn).append(_cell(cell, left, place * _ROW, width))
    # Marked cells come last: their outlines lie over their neighbours'.
    return Block(sum(widths), _ROW * (len(table.rows) + 1), "\n".join(drawn + marked))


def to_svg(table: Table, caption: Iterable[str] = ()) -> str:
    """The table as one self-contained picture, light and dark.

    Args:
        table: the table.
        caption: sentences under its title.

    >>> drawn = to_svg(Table("sums", ("int8",), (("int8", (Cell("int16", "integer"),)),)))
    >>> drawn.startswith("<svg"), drawn.count("int16")
    (True, 1)
    """
    return picture(table.title, table_block(table), caption=caption, entries=table.legend)


def _text(text: str, left: float, top: float, style: str = "mono") -> str:
    x, y = number(left + _PADDING), number(top + _ROW / 2 + 4)
    return f'<text class="{style}" x="{x}" y="{y}">{escape(text)}</text>'


def _heading(text: str, left: float, top: float) -> str:
    return _text(text, left, top, "mono head")


def _cell(cell: Cell, left: float, top: float, width: float) -> str:
    hint = f"<title>{escape(cell.hint)}</title>" if cell.hint else ""
    marked = " marked" if cell.marked else ""
    box = f'x="{number(left)}" y="{number(top)}" width="{number(width)}" height="{number(_ROW)}"'
    return f'<g class="{cell.style}{marked}">{hint}<rect class="box" {box}/>{_text(cell.text, left, top)}</g>'
