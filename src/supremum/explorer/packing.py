"""Tables and texts in forms that compress well; `answers.js` unpacks them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int_]
_NOTHING = -1
_EARLIER_ROWS = 1000
"""How many rows before a row are compared with it; more take longer and save little."""


def steps(numbers: Sequence[int]) -> list[int]:
    """Return the differences between neighbors, starting from 0.

    Args:
        numbers: the numbers.

    >>> steps([5, 6, 6, 2])
    [5, 1, 0, -4]
    """
    return [after - before for before, after in pairwise((0, *numbers))]


def packed_tables(tables: Sequence[Sequence[Sequence[int]]]) -> tuple[dict[str, Any], list[int]]:
    """Pack square tables: each different row once, as its differences from what earlier rows predict.

    Many rows differ in a few cells from a row of another operation or rule set, which is too far away for the window of
    Deflate. Left of the diagonal, the cell of the swapped operands predicts a row better: most pairs of operands that
    have the same cell also have the same cell if they are swapped. Together this takes less than half of the space.

    Args:
        tables: tables of numbers from 0.

    Returns:
        The packed tables, and the numbers in the order in which they first appear, by which a packed table counts them.
        Of the packed tables, `tables` has the indices of the rows of each table, as `steps`. For each row, `back` is
        how many rows earlier the similar row is, 0 for none, `swaps` whether swapped operands predict the cells left
        of the diagonal, and `changed` how many cells differ from what is predicted. `places` and `cells` are the
        columns and the numbers of all these cells. A column is stored as the difference from the one before it, a
        number as how many others have been in `cells` since it last was, 0 for the next new number.

    >>> packed, order = packed_tables([[(7, 8), (9, 7)], [(7, 6), (9, 7)]])
    >>> order, packed["tables"]
    ([7, 8, 9, 6], [[0, 1], [2, -1]])
    >>> packed["back"], packed["changed"], packed["places"], packed["cells"]
    ([0, 1, 2], [2, 2, 1], [0, 1, 0, 1, 1], [0, 0, 0, 3, 0])
    """
    packed: dict[str, Any] = {name: [] for name in ("tables", "back", "swaps", "changed", "places", "cells")}
    numbers: dict[int, int] = {}
    recent: list[int] = []
    rows: dict[tuple[int, ...], int] = {}
    widest = max(map(len, tables), default=0)
    known = np.full((sum(map(len, tables)), widest), _NOTHING)
    swapped = np.full(1 + sum(len(row) for table in tables for row in table), _NOTHING)
    for table in tables:
        width = len(table)
        numbered = [[numbers.setdefault(cell, len(numbers)) for cell in row] for row in table]
        cells = np.array(numbered, dtype=int).reshape(width, width)
        for place, row in enumerate(cells):
            number = rows.setdefault(tuple(row.tolist()), len(rows))
            if number == len(packed["back"]):
                known[number, :width] = row
                earlier = known[max(0, number - _EARLIER_ROWS) : number, :width][::-1]
                left = swapped[cells[:place, place]]
                _pack_row(packed, row, earlier, left, recent)
            swapped[cells[:place, place]] = row[:place]
        packed["tables"].append(steps([rows[tuple(row)] for row in numbered]))
    return packed, list(numbers)


def _pack_row(packed: dict[str, Any], row: Numbers, earlier: Numbers, left: Numbers, recent: list[int]) -> None:
    """Add a row to packed tables.

    Args:
        packed: the packed tables.
        row: the numbers of the row.
        earlier: the earlier rows that may be similar, the nearest first.
        left: the numbers that swapped operands predict left of the diagonal, `_NOTHING` where they predict nothing.
        recent: the numbers that `cells` has, the most recent last.
    """
    guesses = earlier if len(earlier) else np.full((1, len(row)), _NOTHING)
    with_swaps = guesses.copy()
    with_swaps[:, : len(left)] = np.where(left == _NOTHING, guesses[:, : len(left)], left)
    wrong, wrong_with_swaps = (guesses != row).sum(1), (with_swaps != row).sum(1)
    swaps = bool(wrong_with_swaps.min() < wrong.min())
    nearest = int(np.argmin(wrong_with_swaps if swaps else wrong))
    places: list[int] = np.nonzero((with_swaps if swaps else guesses)[nearest] != row)[0].tolist()
    packed["back"].append(nearest + 1 if len(earlier) else 0)
    packed["swaps"].append(int(swaps))
    packed["changed"].append(len(places))
    packed["places"] += steps(places)
    for number in row[places].tolist():
        if number == len(recent):
            packed["cells"].append(0)
        else:
            place = recent.index(number)
            packed["cells"].append(len(recent) - place)
            del recent[place]
        recent.append(number)


def packed_texts(texts: Iterable[str]) -> dict[str, list[str] | list[list[int]]]:
    r"""Pack texts as indices of their lines, because most lines are in many texts.

    Args:
        texts: texts of one or more lines.

    Returns:
        `lines` are the different lines, and `columns` the index of the first line of each text, of the second and so
        on; -1 where a text has fewer lines.

    >>> packed_texts(["a\nb", "b", "a\nc"])
    {'lines': ['a', 'b', 'c'], 'columns': [[0, 1, 0], [1, -1, 2]]}
    """
    lines: dict[str, int] = {}
    numbered = [[lines.setdefault(line, len(lines)) for line in text.split("\n")] for text in texts]
    longest = max(map(len, numbered), default=0)
    columns = [[each[i] if i < len(each) else _NOTHING for each in numbered] for i in range(longest)]
    return {"lines": list(lines), "columns": columns}
