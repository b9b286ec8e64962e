"""A table of short texts, as plain data and as Markdown."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """The reason why a cell is marked.

    Args:
        name: one word, such as `"wider"`.
        symbol: one character for narrow cells, for readers who do not see the colours.
        meaning: the description, such as `"wider in numpy"`.
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
        upright: whether to right-align the cells, which are numbers, under vertical headings, to save width.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    legend: tuple[tuple[str, str], ...] = ()
    full_names: tuple[tuple[str, str], ...] = ()
    upright: bool = False

    @property
    def marks(self) -> dict[Mark, int]:
        """The number of cells for each mark, the most frequent first."""
        return dict(Counter(cell.mark for _, cells in self.rows for cell in cells if cell.mark).most_common())


STEPS = 6
"""The number of steps in the colour ramp for numbers."""

PALETTE: dict[str, tuple[str, str]] = {
    "bool": ("#eceff1", "#37474f"),
    "integer": ("#dbeafe", "#1e3a5f"),
    "float": ("#dcfce7", "#14532d"),
    "complex": ("#f3e8ff", "#4c1d73"),
    "refused": ("#fee2e2", "#7f1d1d"),
    "step0": ("#ffffff", "#16181d"),
    "step1": ("#fff4e0", "#2b2216"),
    "step2": ("#ffe6bd", "#402c10"),
    "step3": ("#ffd494", "#573607"),
    "step4": ("#ffbd66", "#6b3d00"),
    "step5": ("#fba640", "#7a4100"),
}
"""The light and dark background of each class. Text keeps the page's colour, with a contrast above 7 to 1."""


def step(value: float, largest: float) -> str:
    """The class that colours a number by its size: the first step is only for 0, the last for the largest.

    Args:
        value: from 0 to `largest`.
        largest: the largest of the numbers.

    >>> [step(value, 100) for value in (0, 1, 20, 21, 100)]
    ['step0', 'step1', 'step1', 'step2', 'step5']
    """
    return f"step{-int(-(STEPS - 1) * value // largest)}" if value else "step0"


def to_markdown(table: Table) -> str:
    """The table in GitHub's Markdown."""
    lines = [f"**{_markdown(table.title)}**", ""]
    lines.append("| |" + "|".join(f" {_markdown(column)} " for column in table.columns) + "|")
    lines.append("|" + "---|" * (len(table.columns) + 1))
    for label, cells in table.rows:
        texts = (_markdown(cell.text, bold=cell.marked) for cell in cells)
        lines.append(f"| {_markdown(label, bold=bool(label))} |" + "|".join(f" {text} " for text in texts) + "|")
    return "\n".join(lines) + "\n"


# Characters with a meaning in Markdown; an underscore has one at the edge of a word.
_SPECIAL = re.compile(r"[\\`*\[\]<>|&~]|(?<![^\W_])_|_(?![^\W_])")


def _markdown(text: str, *, bold: bool = False) -> str:
    escaped = _SPECIAL.sub(r"\\\g<0>", " ".join(text.splitlines()))
    return f"**{escaped}**" if bold else escaped
