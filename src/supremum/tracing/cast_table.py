"""The casts of a program as lines of a table, for text, HTML and rich."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from supremum.jaxprs import shown
from supremum.tracing.cast import Cast

HEADINGS = ("#", "bytes", "times", "from", "to", "shape", "class", "line", "expression")
RIGHT = frozenset({0, 1, 2})
"""The columns of numbers."""
TOTALS = frozenset({1, 2})
"""Those of totals."""
WIDTH = 60
"""How much of an expression plain text shows."""
_SHOWN = 40
# ANSI names, which follow the reader's own theme.
_COLOURS = {"promotion": "red", "explicit": "green", "library": "dim", "autocast": "blue", "unknown": "yellow"}


def places_of(casts: Sequence[Cast]) -> dict[str, str]:
    """How tables write the users' lines: by the name of the file, where no other has the same."""
    files = {cast.file for cast in casts}
    names = Counter(Path(file).name for file in files)
    return {
        cast.where: f"{Path(cast.file).name}:{cast.line}"
        if cast.file and names[Path(cast.file).name] == 1
        else cast.where
        for cast in casts
    }


def lines_of(casts: Sequence[Cast], width: int | None = None) -> list[tuple[str, ...]]:
    """A line for each cast; casts that differ in nothing shown share one, with the number of the first of them."""
    places = places_of(casts)
    merged: dict[tuple[str, ...], list[tuple[int, Cast]]] = {}
    for index, cast in enumerate(casts):
        shape = f"[{','.join(map(str, cast.shape))}]"
        times = "?" if cast.times is None else str(cast.times)
        text = (
            cast.expression if width is None or len(cast.expression) <= width else f"{cast.expression[: width - 3]}..."
        )
        key = (times, str(cast.source), str(cast.target), shape, cast.kind, places[cast.where], text)
        merged.setdefault(key, []).append((index, cast))
    return [
        (str(found[0][0]), shown(sum(cast.total_bytes for _, cast in found)), _runs(key[0], len(found)), *key[1:])
        for key, found in merged.items()
    ]


def _runs(times: str, count: int) -> str:
    return times if count == 1 else f"{count} x {times}"


def cut(lines: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The first lines, and how many more there are."""
    rest = len(lines) - _SHOWN
    if rest <= 0:
        return list(lines)
    return [*lines[:_SHOWN], (f"+{rest}", *("..." for _ in lines[0][1:]))]


def rich_tables(title: str, casts: Sequence[Cast], totals: Sequence[Sequence[tuple[str, ...]]]) -> Any:
    """The tables of a report for rich.

    Args:
        title: what stands above them.
        casts: the casts.
        totals: smaller tables, each with its headings first.
    """
    from rich.box import SIMPLE_HEAD  # only who prints with rich needs it
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
