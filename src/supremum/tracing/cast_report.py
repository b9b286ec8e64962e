"""The report on the casts of a program: as a table, as data, and one cast at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supremum.errors import ArgumentError
from supremum.render import aligned, columns_to_html
from supremum.render.document import Document, to_html, to_text
from supremum.tracing.cast import Cast
from supremum.tracing.judging import CLASSES

_HEADINGS = ("#", "bytes", "times", "from", "to", "shape", "class", "line", "expression")
_RIGHT = frozenset({0, 1, 2})
_SHOWN = 40
_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Total:
    """What some casts of a program sum up to.

    Args:
        casts: how many there are.
        bytes: what they read and write when the program runs once; loops of unknown length count as one round.
    """

    casts: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CastReport:
    """The casts of a program.

    Args:
        casts: each cast, those that move the most bytes first.
    """

    casts: tuple[Cast, ...]

    def __len__(self) -> int:
        return len(self.casts)

    def __iter__(self) -> Iterator[Cast]:
        return iter(self.casts)

    def __getitem__(self, index: int) -> Cast:
        return self.casts[index]

    @property
    def total(self) -> Total:
        """What all of them sum up to."""
        return _total(self.casts)

    @property
    def by_class(self) -> dict[str, Total]:
        """What the casts of each class sum up to, classes without any left out."""
        totals = _totals(self.casts, lambda cast: cast.kind)
        return {kind: totals[kind] for kind in CLASSES if kind in totals}

    @property
    def by_line(self) -> dict[str, Total]:
        """What the casts of each of the user's lines, `"file:line"`, sum up to; most bytes first."""
        totals = _totals(self.casts, lambda cast: cast.where)
        return dict(sorted(totals.items(), key=lambda item: -item[1].bytes))

    @property
    def promotion(self) -> CastReport:
        """Only those where the user's expression mixed dtypes."""
        return self.where(lambda cast: cast.kind == "promotion")

    @property
    def widening(self) -> CastReport:
        """Only those to more bits."""
        return self.where(lambda cast: cast.widening)

    @property
    def lossy(self) -> CastReport:
        """Only those that cannot keep every value."""
        return self.where(lambda cast: cast.lossy)

    @property
    def weak(self) -> CastReport:
        """Only those of values without a dtype of their own."""
        return self.where(lambda cast: cast.weak)

    def where(self, condition: Callable[[Cast], bool]) -> CastReport:
        """Only those for which a condition holds.

        Args:
            condition: a function of one cast.
        """
        return CastReport(tuple(filter(condition, self.casts)))

    def explain(self, index: int) -> Explanation:
        """Why there is a cast, with what the rules say; it prints a few plain lines and renders in notebooks.

        Args:
            index: the number of the cast in this report.

        Raises:
            ArgumentError: if there is none of that number.

        >>> import jax.numpy as jnp
        >>> from supremum.tracing import casts
        >>> report = casts(lambda x, w: x * w)(jnp.ones(4, "bfloat16"), jnp.ones(4))
        >>> [line for line in str(report.explain(0)).splitlines() if "reason" in line]
        ['  reason      float32 is the least upper bound: bfloat16 -> float32']
        """
        if not 0 <= index < len(self.casts):
            raise ArgumentError(f"there is no cast {index}: this report has {len(self.casts)}, counted from 0")
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

    def to_html(self) -> str:
        """The report as an HTML fragment that needs no style sheet."""
        lines = [_HEADINGS, *_lines(self.casts, _places(self.casts), None)]
        return columns_to_html(self._title(), lines, right=_RIGHT)

    def _repr_html_(self) -> str:
        return self.to_html()

    def _title(self) -> str:
        classes = ", ".join(f"{total.casts} {kind}" for kind, total in self.by_class.items())
        return f"{_counted(self.total)}{f' ({classes})' if classes else ''}"

    def __str__(self) -> str:
        if not self.casts:
            return "0 casts"
        places = _places(self.casts)
        rows = _lines(self.casts, places, _WIDTH)
        lines = [self._title(), "", aligned((_HEADINGS, *rows[:_SHOWN]), right=_RIGHT)]
        if len(rows) > _SHOWN:
            lines.append(f"... and {len(rows) - _SHOWN} more, in .casts, to_html() and to_json()")
        totals = [("class", "casts", "bytes")]
        totals += [(kind, str(total.casts), f"{total.bytes:,}") for kind, total in self.by_class.items()]
        per_line = [("line", "casts", "bytes")]
        per_line += [(places[at], str(total.casts), f"{total.bytes:,}") for at, total in self.by_line.items()]
        right = frozenset({1, 2})
        lines += ["", aligned(totals, right=right), "", aligned(per_line[: _SHOWN + 1], right=right)]
        return "\n".join(lines)


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
        rows = [("expression", cast.expression or "-"), ("line", cast.where)]
        rows += [
            ("called from" if number == 0 else "", f"{at} ({at.function}): {text}")
            for number, (at, text) in enumerate(reversed(cast.path[:-1]))
        ]
        rows += [("operands" if number == 0 else "", text) for number, text in enumerate(cast.operands)]
        rows += [("scope", cast.scope)] if cast.scope else []
        times = "?" if cast.times is None else str(cast.times)
        rows += [("bytes", f"{cast.bytes:,} x {times}"), ("reason", cast.reason)]
        rows += [("fix", cast.fix)] if cast.fix else []
        if cast.decision is not None:
            rows += [
                ("rules" if number == 0 else "", line) for number, line in enumerate(str(cast.decision).split("\n"))
            ]
        shape = ",".join(map(str, cast.shape))
        return Document(f"{cast.source}[{shape}] -> {cast.target}", cast.kind, tuple(rows), ok=cast.kind != "promotion")

    def __str__(self) -> str:
        return to_text(self.document())

    def _repr_html_(self) -> str:
        return to_html(self.document())


def _total(casts: Sequence[Cast]) -> Total:
    return Total(len(casts), sum(cast.total_bytes for cast in casts))


def _totals(casts: Sequence[Cast], key: Callable[[Cast], str]) -> dict[str, Total]:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for cast in casts:
        counts[key(cast)] += 1
        sizes[key(cast)] += cast.total_bytes
    return {name: Total(counts[name], sizes[name]) for name in counts}


def _data(total: Total) -> dict[str, int]:
    return {"casts": total.casts, "bytes": total.bytes}


def _counted(total: Total) -> str:
    return f"{total.casts} cast{'' if total.casts == 1 else 's'}, {total.bytes:,} bytes"


def _places(casts: Sequence[Cast]) -> dict[str, str]:
    """How tables write the users' lines: by the name of the file, where no other has the same."""
    files = {cast.file for cast in casts}
    names = Counter(Path(file).name for file in files)
    return {
        cast.where: f"{Path(cast.file).name}:{cast.line}"
        if cast.file and names[Path(cast.file).name] == 1
        else cast.where
        for cast in casts
    }


def _lines(casts: Sequence[Cast], places: dict[str, str], width: int | None) -> list[tuple[str, ...]]:
    """A line for each cast; casts that differ in nothing shown share one, with the number of the first of them."""
    merged: dict[tuple[str, ...], list[tuple[int, Cast]]] = {}
    for index, cast in enumerate(casts):
        shape = f"[{','.join(map(str, cast.shape))}]"
        times = "?" if cast.times is None else str(cast.times)
        text = (
            cast.expression if width is None or len(cast.expression) <= width else f"{cast.expression[: width - 3]}..."
        )
        key = (times, str(cast.source), str(cast.target), shape, cast.kind, places[cast.where], text)
        merged.setdefault(key, []).append((index, cast))
    return [
        (str(found[0][0]), f"{sum(cast.total_bytes for _, cast in found):,}", _runs(key[0], len(found)), *key[1:])
        for key, found in merged.items()
    ]


def _runs(times: str, count: int) -> str:
    return times if count == 1 else f"{count} x {times}"
