"""The source lines around an expression, for pages."""

from __future__ import annotations

import linecache
from typing import Protocol

_AROUND = 2
"""The number of lines shown before and after an expression."""


class SourceRange(Protocol):
    """The source range of an expression, such as `supremum.jaxprs.Position`.

    >>> import jax
    >>> from supremum.jaxprs import frames_of
    >>> (equation,) = jax.make_jaxpr(lambda x: x + 1)(1.0).eqns
    >>> where: SourceRange = frames_of(equation).positions[0]
    >>> where.function, where.line
    ('<lambda>', 1)
    """

    @property
    def file(self) -> str:
        """The file."""
        ...

    @property
    def function(self) -> str:
        """The qualified name of the function."""
        ...

    @property
    def line(self) -> int:
        """The first line, counted from 1."""
        ...

    @property
    def end_line(self) -> int:
        """The last line."""
        ...

    @property
    def column(self) -> int:
        """The start in the first line, in bytes of UTF-8, counted from 0."""
        ...

    @property
    def end_column(self) -> int:
        """The end in the last line."""
        ...


def source_lines(file: str, line: int, at: SourceRange | None) -> list[tuple[int, str, str, str]]:
    """The source lines around an expression, without blank ones at the ends.

    Args:
        file: the file; there are no lines if it cannot be read.
        line: the first line of the expression.
        at: its range; None if only its line is known.

    Returns:
        For each line its number, and the text before, in and after the expression.

    >>> source_lines("no such file.py", 3, None)
    []
    """
    last = line if at is None else at.end_line
    lines = linecache.getlines(file)
    numbers = list(range(max(1, line - _AROUND), min(len(lines), last + _AROUND) + 1))
    while numbers and numbers[0] < line and not lines[numbers[0] - 1].strip():
        del numbers[0]
    while numbers and numbers[-1] > last and not lines[numbers[-1] - 1].strip():
        del numbers[-1]
    return [(number, *_split_line(lines[number - 1].rstrip(), number, at)) for number in numbers]


def _split_line(line: str, number: int, at: SourceRange | None) -> tuple[str, str, str]:
    """The text of a line before, in and after an expression."""
    if at is None or not at.line <= number <= at.end_line:
        return line, "", ""
    text = line.encode()  # columns count bytes
    start = at.column if number == at.line else len(text) - len(text.lstrip())
    end = at.end_column if number == at.end_line else len(text)
    before, inside, after = (part.decode(errors="replace") for part in (text[:start], text[start:end], text[end:]))
    return before, inside, after
