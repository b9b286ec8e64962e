"""Tables and texts in forms that compress well; `answers.js` unpacks them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

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


def packed_rows(rows: Sequence[Sequence[int]]) -> dict[str, list[int]]:
    """Pack each row as its differences from the most similar earlier row.

    Many rows differ in a few cells from a row of another operation or rule set, which is too far away for the window of
    Deflate. This takes less than half of the space.

    Args:
        rows: rows of numbers from 0, of any lengths.

    Returns:
        For each row, `back` is how many rows earlier the similar row is, 0 for none, and `changed` is how many cells
        differ. `places` and `cells` are the indices and the values of all these cells, as differences within a row. An
        unpacked row may be longer than the row was, if the similar row is longer.

    >>> packed_rows([(3, 4, 5), (3, 7, 5, 2)])
    {'back': [0, 1], 'changed': [3, 2], 'places': [0, 1, 1, 1, 2], 'cells': [3, 1, 1, 7, -5]}
    """
    table = np.full((len(rows), max(map(len, rows), default=0)), _NOTHING)
    packed: dict[str, list[int]] = {"back": [], "changed": [], "places": [], "cells": []}
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
        earlier = table[max(0, number - _EARLIER_ROWS) : number, : len(row)]
        differing = (earlier != table[number, : len(row)]).sum(1)[::-1]
        back = int(np.argmin(differing)) + 1 if number else 0
        similar = table[number - back, : len(row)] if back else np.full(len(row), _NOTHING)
        places: list[int] = np.nonzero(similar != table[number, : len(row)])[0].tolist()
        packed["back"].append(back)
        packed["changed"].append(len(places))
        packed["places"] += steps(places)
        packed["cells"] += steps([row[place] for place in places])
    return packed


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
