"""Two tables side by side, with notes below them, as a page and as a picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import starmap

from supremum.render.svg import Drawing, beside, lines, name_lines, picture, stacked, text_width
from supremum.render.table import Table, framed, grid, key, mark_sentences, table_block

_GAP = 24.0
_WIDEST = 2200.0
"""The width in px above which a picture puts the tables below each other."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Two tables of the same shape with the same marks.

    Args:
        title: the common title.
        left: the left table; its title is its caption.
        right: the right table.
        notes_title: the title of the notes.
        notes: pairs of a heading and short lines, to show below the tables.

    >>> from supremum.analysis import compare
    >>> pair = compare("jax-x64", "numpy", types="int32,float32").side_by_side()
    >>> pair.title, pair.left.title
    ('jax-x64 and numpy, result_type: 2 of 4 cells differ', 'result_type under jax-x64')
    """

    title: str
    left: Table
    right: Table
    notes_title: str = ""
    notes: tuple[tuple[str, tuple[str, ...]], ...] = ()


def side_by_side_to_html(pair: SideBySide) -> str:
    """Build a self-contained page, light and dark; on narrow screens the tables are below each other.

    >>> from supremum.analysis import compare
    >>> page = side_by_side_to_html(
    ...     compare("jax-x64", "numpy", types="int32,float32").side_by_side()
    ... )
    >>> page.count("<table>"), page.count('data-mark="wider"')
    (2, 5)
    """
    tables = "\n".join(grid(table, table.title) for table in (pair.left, pair.right))
    notes = "".join(starmap(_note, pair.notes))
    parts = [key(pair.left, pair.right), f'<div class="beside">\n{tables}\n</div>']
    if notes:
        heading = f"<h2>{escape(pair.notes_title)}</h2>"
        parts.append(f'<section>\n{heading}\n<div class="beside">{notes}</div>\n</section>')
    return framed(pair.title, *parts)


def _note(heading: str, texts: Iterable[str]) -> str:
    listed = "".join(f"<li><code>{escape(text)}</code></li>" for text in texts)
    return f"<div><h3>{escape(heading)}</h3><ul>{listed}</ul></div>"


def side_by_side_to_svg(pair: SideBySide) -> str:
    """Draw a self-contained SVG, light and dark; large tables are below each other.

    >>> from supremum.analysis import compare
    >>> drawn = side_by_side_to_svg(
    ...     compare("jax-x64", "numpy", types="int32,float32").side_by_side()
    ... )
    >>> drawn.startswith("<svg"), drawn.count('data-mark="wider"')
    (True, 4)
    """
    both = [_titled(table) for table in (pair.left, pair.right)]
    tables = (beside if sum(each.width for each in both) <= _WIDEST else stacked)(both, _GAP)
    notes = beside([_noted(*note, (tables.width - _GAP) / 2) for note in pair.notes], _GAP)
    short = name_lines(pair.left.full_names, tables.width)
    heading = _headed(pair.notes_title if pair.notes else "", tables.width)
    entries = tuple(dict.fromkeys(pair.left.legend + pair.right.legend))
    return picture(pair.title, stacked([tables, short, heading, notes]), mark_sentences(pair.left), entries)


def _headed(text: str, width: float) -> Drawing:
    block = lines([text], width)
    return Drawing(width, block.height, f'<g class="bold">{block.body}</g>')


def _titled(table: Table) -> Drawing:
    block = table_block(table)
    return stacked([_headed(table.title, block.width), block])


def _noted(heading: str, texts: tuple[str, ...], width: float) -> Drawing:
    needed = max(text_width(text, 13, monospaced=False) for text in (heading, *texts))
    room = max(width, needed)
    return stacked([_headed(heading, room), lines(texts, room)])
