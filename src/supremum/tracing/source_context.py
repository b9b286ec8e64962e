"""The source lines around an expression, for pages."""

from __future__ import annotations

import linecache

from supremum.jaxprs import Position

_AROUND = 2
"""The number of lines shown before and after an expression."""


def source_lines(file: str, first: int, last: int, at: Position | None) -> list[tuple[int, str, str, str]]:
    """The source lines around an expression, without blank ones at the ends.

    Args:
        file: the file; there are no lines if it cannot be read.
        first: the first line of the expression.
        last: its last line.
        at: its position; None if only its lines are known.

    Returns:
        For each line its number, and the text before, in and after the expression.
    """
    lines = linecache.getlines(file)
    numbers = list(range(max(1, first - _AROUND), min(len(lines), last + _AROUND) + 1))
    while numbers and numbers[0] < first and not lines[numbers[0] - 1].strip():
        del numbers[0]
    while numbers and numbers[-1] > last and not lines[numbers[-1] - 1].strip():
        del numbers[-1]
    return [(number, *_divided(lines[number - 1].rstrip(), number, at)) for number in numbers]


def _divided(line: str, number: int, at: Position | None) -> tuple[str, str, str]:
    """The text of a line before, in and after an expression."""
    if at is None or not at.line <= number <= at.end_line:
        return line, "", ""
    text = line.encode()  # columns count bytes
    start = at.column if number == at.line else len(text) - len(text.lstrip())
    end = at.end_column if number == at.end_line else len(text)
    before, inside, after = (part.decode(errors="replace") for part in (text[:start], text[start:end], text[end:]))
    return before, inside, after
