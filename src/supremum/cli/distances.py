"""The matrix of distances of `supremum diff --all`, on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from supremum.analysis import Distances

# ANSI colours follow the terminal's theme.
_COLOURS = {"step0": "dim", "step1": "", "step2": "cyan", "step3": "green", "step4": "yellow", "step5": "bold red"}


def draw_distances(found: Distances, console: Console) -> None:
    """Draw the matrix on a console as a triangle, like the distances between towns on a map.

    Each name ends its row and heads its column, so that there is room for all names.

    Args:
        found: the distances.
        console: the console.
    """
    drawn = found.drawing()
    width = max(len(cell.text) for _, cells in drawn.rows for cell in cells)
    lines = [Text(drawn.title, style="bold"), Text("Each name ends its row and heads its column."), Text()]
    for place, (name, cells) in enumerate(drawn.rows):
        texts = ((f"{cell.text:>{width}} ", _COLOURS[cell.style]) for cell in cells[:place])
        lines.append(Text.assemble(*texts, (name, "bold")))
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
