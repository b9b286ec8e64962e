"""`supremum diff --all`: the matrix of distances, on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from supremum.distances import Distances

# ANSI names, which follow the reader's own theme, by the steps of the ramp; the numbers stand there as well.
_COLOURS = {"step0": "dim", "step1": "", "step2": "cyan", "step3": "green", "step4": "yellow", "step5": "bold red"}


def draw_distances(found: Distances, console: Console) -> None:
    """Draw the matrix on a console; the columns have numbers for names.

    Args:
        found: the distances.
        console: where to.
    """
    drawn = found.drawing()
    labels = [f"{place:2} {name}" for place, name in enumerate(found.names, 1)]
    label = max(map(len, labels))
    width = max(len(cell.text) for _, cells in drawn.rows for cell in cells) + 1
    head = "".join(f"{place:>{width}}" for place in range(1, len(labels) + 1))
    lines = [Text(drawn.title, style="bold"), Text(), Text(f"{'':{label}}{head}", style="bold")]
    for name, (_, cells) in zip(labels, drawn.rows, strict=True):
        line = Text(f"{name:{label}}", style="bold")
        for cell in cells:
            line.append(f"{cell.text:>{width}}", style=f"not bold {_COLOURS[cell.style]}".strip())
        lines.append(line)
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
