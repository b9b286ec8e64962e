"""The casts of a program as table rows, for text, HTML and rich."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from supremum.jaxprs import shown
from supremum.tracing.cast import Cast

HEADINGS = ("#", "bytes", "times", "from", "to", "shape", "class", "line", "expression")
RIGHT = frozenset({0, 1, 2})
"""The numeric columns of the table of casts."""
TOTALS = frozenset({1, 2})
"""The numeric columns of the tables of totals."""
WIDTH = 60
"""The longest expression that plain text shows, in characters."""
_SHOWN = 40
# ANSI colours follow the terminal's theme.
_COLOURS = {"promotion": "red", "explicit": "green", "library": "dim", "autocast": "blue", "unknown": "yellow"}


def places_of(casts: Sequence[Cast]) -> dict[str, str]:
    """Map each line, `file:line`, to its form in tables: only the file's name where that is unambiguous."""
    names = Counter(Path(file).name for file in {cast.file for cast in casts})
    short = {cast.where: f"{Path(cast.file).name}:{cast.line}" for cast in casts}
    unique = {cast.where for cast in casts if cast.file and names[Path(cast.file).name] == 1}
    return {where: name if where in unique else where for where, name in short.items()}


def lines_of(casts: Sequence[Cast], width: int | None = None) -> list[tuple[str, ...]]:
    """One row for each cast. Casts that look the same share a row, which has the number of the first."""
    places = places_of(casts)
    merged: dict[tuple[str, ...], list[int]] = {}
    for index, cast in enumerate(casts):
        text = cast.expression
        if width is not None and len(text) > width:
            text = f"{text[: width - 3]}..."
        times, shape = "?" if cast.times is None else str(cast.times), f"[{','.join(map(str, cast.shape))}]"
        key = (times, str(cast.source), str(cast.target), shape, cast.kind, places[cast.where], text)
        merged.setdefault(key, []).append(index)
    lines: list[tuple[str, ...]] = []
    for (times, *rest), found in merged.items():
        runs = times if len(found) == 1 else f"{len(found)} x {times}"
        lines.append((str(found[0]), shown(sum(casts[index].total_bytes for index in found)), runs, *rest))
    return lines


def cut(lines: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The first rows, followed by the number of the rest."""
    rest = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([(f"+{rest}", *("..." for _ in lines[0][1:]))] if rest > 0 else [])]


def rich_tables(title: str, casts: Sequence[Cast], totals: Sequence[Sequence[tuple[str, ...]]]) -> Any:
    """The tables of a report for rich.

    Args:
        title: the line above the tables.
        casts: the casts.
        totals: smaller tables, each with its headings first.
    """
    from rich.box import SIMPLE_HEAD  # rich is needed only to print
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    drawn: list[Any] = [Text(title, style="bold")]
    if not casts:
        return Group(*drawn)
    for headings, *lines in ((HEADINGS, *lines_of(casts)), *totals):
        table = Table(box=SIMPLE_HEAD, show_edge=False)
        numbers = RIGHT if headings == HEADINGS else TOTALS
        for place, heading in enumerate(headings):
            table.add_column(heading, justify="right" if place in numbers else "left", overflow="fold")
        for line in cut(lines):
            style = next((_COLOURS[text] for text in line if text in _COLOURS), "")
            table.add_row(*map(Text, line), style=style)
        drawn.append(table)
    return Group(*drawn)
