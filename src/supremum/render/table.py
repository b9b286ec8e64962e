"""A table of short texts as plain data, as Markdown and as a page of HTML."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """Why a cell stands out among the others.

    Args:
        name: one word, such as `"wider"`.
        symbol: one sign for narrow cells, so that nothing depends on seeing colours.
        meaning: what it says of a cell, such as `"wider in numpy"`.
    """

    name: str
    symbol: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Args:
        text: what it says.
        style: the class it is coloured by, a key of `PALETTE`.
        hint: a longer text for those who point at it.
        mark: why it stands out among the others; None if it does not.
    """

    text: str
    style: str
    hint: str = ""
    mark: Mark | None = None

    @property
    def marked(self) -> bool:
        """Whether it stands out."""
        return self.mark is not None


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table.

    Args:
        title: what it is about.
        columns: the headings, which are also the row labels of a square table.
        rows: pairs of row label and one cell per column.
        legend: pairs of class and what it means, in the order to show them.
        full_names: what headings and texts are short for, where they are.
        upright: whether the cells are numbers, at the right and under headings that stand upright, for want of width.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    legend: tuple[tuple[str, str], ...] = ()
    full_names: tuple[tuple[str, str], ...] = ()
    upright: bool = False

    @property
    def marks(self) -> dict[Mark, int]:
        """How many cells stand out for each reason, the most frequent first."""
        return dict(Counter(cell.mark for _, cells in self.rows for cell in cells if cell.mark).most_common())


STEPS = 6
"""How many steps the ramp has that colours numbers by their size."""

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
"""Pairs of light and dark background per class; text stays the page's own colour, with a contrast above 7 to 1."""


def step(value: float, largest: float) -> str:
    """The class that colours a number by its size: the first step is for 0 alone, the last for the largest.

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
        named = f"**{_markdown(label)}**" if label else ""
        lines.append(f"| {named} |" + "|".join(f" {_marked(cell)} " for cell in cells) + "|")
    return "\n".join(lines) + "\n"


# What Markdown reads as its own; an underscore is its own at the edge of a word.
_OF_MARKDOWN = re.compile(r"[\\`*\[\]<>|&~]|(?<![^\W_])_|_(?![^\W_])")


def _markdown(text: str) -> str:
    return _OF_MARKDOWN.sub(r"\\\g<0>", " ".join(text.splitlines()))


def _marked(cell: Cell) -> str:
    text = _markdown(cell.text)
    return f"**{text}**" if cell.marked else text
