"""`supremum diff --all`: the matrix of distances, on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from supremum.analysis import Distances

# ANSI names, which follow the reader's own theme, by the steps of the ramp; the numbers stand there as well.
_COLOURS = {"step0": "dim", "step1": "", "step2": "cyan", "step3": "green", "step4": "yellow", "step5": "bold red"}


def draw_distances(found: Distances, console: Console) -> None:
    """Draw the matrix on a console as a triangle, like the distances between towns on a map.

    Each count stands there once: a name ends its row and heads its column, so that all names have room.

    Args:
        found: the distances.
        console: where to.
    """
    drawn = found.drawing()
    width = max(len(cell.text) for _, cells in drawn.rows for cell in cells)
    lines = [Text(drawn.title, style="bold"), Text("Each name ends its row and heads its column."), Text()]
    for place, (name, (_, cells)) in enumerate(zip(found.names, drawn.rows, strict=True)):
        line = Text()
        for cell in cells[:place]:
            line.append(f"{cell.text:>{width}} ", style=_COLOURS[cell.style])
        lines.append(line.append(name, style="bold"))
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
