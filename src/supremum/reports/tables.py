"""The table of a report: a line and an expression for each row, and columns of texts, as text and HTML."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from supremum.render import aligned, columns_to_html, fitted, shortened
from supremum.reports.rows import SourceLine, short_names, short_place

SHOWN = 40
"""The most rows of a table that plain text shows."""
_EXPRESSION = 1


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        heading: the heading.
        text: a function of a row that returns the text of its cell.
        right: whether to align texts on the right, as for numbers.
        optional: whether to leave the column out if it has no text.

    >>> Column("runs", lambda row: str(row.runs), right=True).heading
    'runs'
    """

    heading: str
    text: Callable[[Any], str]
    right: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table of rows.

    Args:
        rows: the rows.
        columns: the columns after those of the line and the expression.

    >>> row = SourceLine(file="model.py", line=3, expression="x + y")
    >>> table = RowTable([row], [Column("file", lambda row: row.file)])
    >>> print(table.to_text("1 row"))
    1 row
    <BLANKLINE>
    line        expression  file
    model.py:3  x + y       model.py
    """

    rows: Sequence[SourceLine]
    columns: Sequence[Column]

    def to_text(self, *sentences: str) -> str:
        """The sentences, and below them the first rows, as wide as the terminal.

        In a terminal that is too narrow for a table, each row has several lines.

        Args:
            sentences: what the report says above the table.
        """
        width = shutil.get_terminal_size().columns
        head = [textwrap.fill(sentence, width) for sentence in sentences]
        if not self.rows:
            return "\n".join(head)
        lines, right = self._lines(self.rows[:SHOWN])
        table = aligned(fitted(lines, width, _EXPRESSION), right=right)
        if max(map(len, table.splitlines())) > width:
            table = "\n".join(_block(lines[0], line, width) for line in lines[1:])
        rest = len(self.rows) - SHOWN
        return "\n".join([*head, "", table, *([f"... and {rest} more"] if rest > 0 else [])])

    def to_html(self, title: str) -> str:
        """The table as an HTML fragment that needs no style sheet.

        Args:
            title: the title above the table.
        """
        lines, right = self._lines(self.rows)
        return columns_to_html(title, lines, right=right)

    def _lines(self, rows: Sequence[SourceLine]) -> tuple[list[tuple[str, ...]], frozenset[int]]:
        """The headings and the texts of each row; and the right-aligned columns."""
        names = short_names(row.file for row in self.rows)
        columns = [each for each in self.columns if not each.optional or any(map(each.text, rows))]
        lines = [("line", "expression", *(each.heading for each in columns))]
        for row in rows:
            place = short_place(names, row)
            lines.append((place, row.expression, *(each.text(row) for each in columns)))
        return lines, frozenset(place for place, each in enumerate(columns, 2) if each.right)


def _block(headings: Sequence[str], line: Sequence[str], width: int) -> str:
    """A row in several lines, for a terminal too narrow for a table."""
    texts = zip(headings[2:], line[2:], strict=True)
    details = "; ".join(f"{heading} {text}" for heading, text in texts if text)
    place = shortened(f"{line[0]}  {line[1]}".rstrip(), width)
    return "\n".join([place, textwrap.fill(details, width, initial_indent="  ", subsequent_indent="    ")])
