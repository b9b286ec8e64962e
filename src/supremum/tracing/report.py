"""The report on the casts of a program: a table, plain data, and an explanation of each cast."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supremum.errors import ArgumentError
from supremum.jaxprs import largest_first, plain, shown
from supremum.render import Document, aligned, columns_to_html, document_to_html, document_to_text
from supremum.tracing.cast import CLASSES, Cast

_HEADINGS = ("#", "bytes", "times", "from", "to", "shape", "class", "line", "expression")
_RIGHT = frozenset({0, 1, 2})
"""The numeric columns of the table of casts."""
_TOTALS = frozenset({1, 2})
"""The numeric columns of the tables of totals."""
_WIDTH = 60
"""The longest expression that plain text shows, in characters."""
_SHOWN = 40
# ANSI colours follow the terminal's theme.
_COLOURS = {"promotion": "red", "explicit": "green", "library": "dim", "autocast": "blue", "unknown": "yellow"}


@dataclass(frozen=True, slots=True)
class CastTotal:
    """The total of some casts of a program.

    Args:
        casts: the number of casts.
        bytes: the bytes that they read and write when the program runs once; a loop of unknown length counts as one
            iteration. An expression if sizes are symbolic.
    """

    casts: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CastReport:
    """The casts of a program.

    Args:
        casts: the casts, those that move the most bytes first.
    """

    casts: tuple[Cast, ...]

    def __len__(self) -> int:
        return len(self.casts)

    def __iter__(self) -> Iterator[Cast]:
        return iter(self.casts)

    def __getitem__(self, index: int) -> Cast:
        return self.casts[index]

    @property
    def total(self) -> CastTotal:
        """The total of all casts."""
        return _total(self.casts)

    @property
    def by_class(self) -> dict[str, CastTotal]:
        """The total of each class that has casts."""
        totals = _totals(self.casts, lambda cast: cast.kind)
        return {kind: totals[kind] for kind in CLASSES if kind in totals}

    @property
    def by_line(self) -> dict[str, CastTotal]:
        """The total of each of the user's lines, `"file:line"`, most bytes first."""
        totals = _totals(self.casts, lambda cast: cast.where)
        return dict(sorted(totals.items(), key=lambda item: largest_first(item[1].bytes)))

    @property
    def promotion(self) -> CastReport:
        """Only the casts where the user's expression mixes dtypes."""
        return self.where(lambda cast: cast.kind == "promotion")

    @property
    def widening(self) -> CastReport:
        """Only the casts to more bits."""
        return self.where(lambda cast: cast.widening)

    @property
    def lossy(self) -> CastReport:
        """Only the casts that cannot keep every value."""
        return self.where(lambda cast: cast.lossy)

    @property
    def weak(self) -> CastReport:
        """Only the casts of weak values."""
        return self.where(lambda cast: cast.weak)

    def where(self, condition: Callable[[Cast], bool]) -> CastReport:
        """Only the casts for which a condition holds.

        Args:
            condition: a function of one cast.
        """
        return CastReport(tuple(filter(condition, self.casts)))

    def explain(self, index: int) -> Explanation:
        """Explain a cast, with the decision of the rules. The result prints as plain text and renders in notebooks.

        Args:
            index: the number of the cast in this report.

        Raises:
            ArgumentError: if the report has no cast of that number.

        >>> import jax.numpy as jnp
        >>> from supremum.tracing import casts
        >>> report = casts(lambda x, w: x * w)(jnp.ones(4, "bfloat16"), jnp.ones(4))
        >>> [line for line in str(report.explain(0)).splitlines() if "reason" in line]
        ['  reason      float32 is the least upper bound: bfloat16 -> float32']
        """
        if not 0 <= index < len(self.casts):
            raise ArgumentError(f"There is no cast {index}: this report has {len(self.casts)} casts, numbered from 0.")
        return Explanation(self.casts[index])

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON."""
        return {
            "casts": [cast.to_dict() for cast in self.casts],
            "total": _data(self.total),
            "by_class": {kind: _data(total) for kind, total in self.by_class.items()},
            "by_line": {line: _data(total) for line, total in self.by_line.items()},
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The report as JSON.

        Args:
            indent: as for `json.dumps`.
        """
        return json.dumps(self.to_dict(), indent=indent)

    @property
    def title(self) -> str:
        """The number of casts, their bytes, and their classes."""
        if not self.casts:
            return "0 casts"
        classes = ", ".join(f"{total.casts} {kind}" for kind, total in self.by_class.items())
        total = self.total
        return f"{total.casts} cast{'' if total.casts == 1 else 's'}, {shown(total.bytes)} bytes ({classes})"

    def to_html(self) -> str:
        """The report as an HTML fragment that needs no style sheet."""
        tables = [columns_to_html(self.title, [_HEADINGS, *_lines_of(self.casts)], right=_RIGHT)]
        if self.casts:
            tables += [columns_to_html(f"by {head[0]}", [head, *rest], right=_TOTALS) for head, *rest in self._totals()]
        return "\n".join(tables)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        if not self.casts:
            return self.title
        tables = [aligned((_HEADINGS, *_cut(_lines_of(self.casts, _WIDTH))), right=_RIGHT)]
        tables += [aligned(_cut(lines), right=_TOTALS) for lines in self._totals()]
        return "\n\n".join([self.title, *tables])

    def __rich__(self) -> Any:
        """What `rich.print` prints: the same tables in colour, as wide as the terminal."""
        return _rich_tables(self.title, self.casts, self._totals())

    def _totals(self) -> list[list[tuple[str, ...]]]:
        """The totals of each class and each line, with headings."""
        places = _places_of(self.casts)
        by_line = {places[at]: total for at, total in self.by_line.items()}
        return [
            [(name, "casts", "bytes"), *((key, str(total.casts), shown(total.bytes)) for key, total in totals.items())]
            for name, totals in (("class", self.by_class), ("line", by_line))
        ]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why there is a cast.

    Args:
        cast: the cast.
    """

    cast: Cast

    def document(self) -> Document:
        """The explanation as plain data for `supremum.render`."""
        cast = self.cast
        shape, times = ",".join(map(str, cast.shape)), "?" if cast.times is None else str(cast.times)
        calls = [f"{at} ({at.function}): {text}" for at, text in reversed(cast.path[:-1])]
        sections = {
            "expression": [cast.expression or "-"],
            "line": [cast.where],
            "called from": calls,
            "operands": cast.operands,
            "scope": [cast.scope] if cast.scope else [],
            "bytes": [f"{shown(cast.bytes)} x {times}"],
            "reason": [cast.reason],
            "fix": [cast.fix] if cast.fix else [],
            "rules": [] if cast.decision is None else str(cast.decision).split("\n"),
        }
        rows = tuple(
            (label if i == 0 else "", text) for label, texts in sections.items() for i, text in enumerate(texts)
        )
        return Document(f"{cast.source}[{shape}] -> {cast.target}", cast.kind, rows, ok=cast.kind != "promotion")

    def __str__(self) -> str:
        return document_to_text(self.document())

    def _repr_html_(self) -> str:
        return document_to_html(self.document())


def _total(casts: Sequence[Cast]) -> CastTotal:
    return CastTotal(len(casts), sum(cast.total_bytes for cast in casts))


def _totals(casts: Sequence[Cast], key: Callable[[Cast], str]) -> dict[str, CastTotal]:
    groups: dict[str, list[Cast]] = {}
    for cast in casts:
        groups.setdefault(key(cast), []).append(cast)
    return {name: _total(group) for name, group in groups.items()}


def _data(total: CastTotal) -> dict[str, int | str]:
    return {"casts": total.casts, "bytes": plain(total.bytes)}


def _places_of(casts: Sequence[Cast]) -> dict[str, str]:
    """Map each line, `file:line`, to its form in tables: only the file's name where that is unambiguous."""
    names = Counter(Path(file).name for file in {cast.file for cast in casts})
    short = {cast.where: f"{Path(cast.file).name}:{cast.line}" for cast in casts}
    unique = {cast.where for cast in casts if cast.file and names[Path(cast.file).name] == 1}
    return {where: name if where in unique else where for where, name in short.items()}


def _lines_of(casts: Sequence[Cast], width: int | None = None) -> list[tuple[str, ...]]:
    """One row for each cast. Casts that look the same share a row, which has the number of the first."""
    places = _places_of(casts)
    merged: dict[tuple[str, ...], list[int]] = {}
    for index, cast in enumerate(casts):
        text = cast.expression
        if width is not None and len(text) > width:
            text = f"{text[: width - 3]}..."
        times, shape = "?" if cast.times is None else str(cast.times), f"[{','.join(map(str, cast.shape))}]"
        key = (times, str(cast.source), str(cast.target), shape, cast.kind, places[cast.where], text)
        merged.setdefault(key, []).append(index)
    lines: list[tuple[str, ...]] = []
    for (times, *rest), found in merged.items():
        runs = times if len(found) == 1 else f"{len(found)} x {times}"
        lines.append((str(found[0]), shown(sum(casts[index].total_bytes for index in found)), runs, *rest))
    return lines


def _cut(lines: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The first rows, followed by the number of the rest."""
    rest = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([(f"+{rest}", *("..." for _ in lines[0][1:]))] if rest > 0 else [])]


def _rich_tables(title: str, casts: Sequence[Cast], totals: Sequence[Sequence[tuple[str, ...]]]) -> Any:
    """The tables of a report for rich.

    Args:
        title: the line above the tables.
        casts: the casts.
        totals: smaller tables, each with its headings first.
    """
    from rich.box import SIMPLE_HEAD  # rich is needed only to print
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    drawn: list[Any] = [Text(title, style="bold")]
    if not casts:
        return Group(*drawn)
    for headings, *lines in ((_HEADINGS, *_lines_of(casts)), *totals):
        table = Table(box=SIMPLE_HEAD, show_edge=False)
        numbers = _RIGHT if headings == _HEADINGS else _TOTALS
        for place, heading in enumerate(headings):
            table.add_column(heading, justify="right" if place in numbers else "left", overflow="fold")
        for line in _cut(lines):
            style = next((_COLOURS[text] for text in line if text in _COLOURS), "")
            table.add_row(*map(Text, line), style=style)
        drawn.append(table)
    return Group(*drawn)
