"""The report on the casts of a program: as a table, as data, and one cast at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from supremum.errors import ArgumentError
from supremum.jaxprs import largest_first, plain, shown
from supremum.render import Document, aligned, columns_to_html, document_to_html, document_to_text
from supremum.tracing.cast import Cast
from supremum.tracing.cast_table import HEADINGS, RIGHT, TOTALS, WIDTH, cut, lines_of, places_of, rich_tables
from supremum.tracing.classify import CLASSES


@dataclass(frozen=True, slots=True)
class CastTotal:
    """What some casts of a program sum up to.

    Args:
        casts: how many there are.
        bytes: what they read and write when the program runs once; loops of unknown length count as one round. With
            symbolic sizes an expression.
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
    def total(self) -> CastTotal:
        """What all of them sum up to."""
        return _total(self.casts)

    @property
    def by_class(self) -> dict[str, CastTotal]:
        """What the casts of each class sum up to, classes without any left out."""
        totals = _totals(self.casts, lambda cast: cast.kind)
        return {kind: totals[kind] for kind in CLASSES if kind in totals}

    @property
    def by_line(self) -> dict[str, CastTotal]:
        """What the casts of each of the user's lines, `"file:line"`, sum up to; most bytes first."""
        totals = _totals(self.casts, lambda cast: cast.where)
        return dict(sorted(totals.items(), key=lambda item: largest_first(item[1].bytes)))

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

    @property
    def title(self) -> str:
        """How many casts there are, what they move, and of which classes they are."""
        if not self.casts:
            return "0 casts"
        classes = ", ".join(f"{total.casts} {kind}" for kind, total in self.by_class.items())
        total = self.total
        return f"{total.casts} cast{'' if total.casts == 1 else 's'}, {shown(total.bytes)} bytes ({classes})"

    def to_html(self) -> str:
        """The report as an HTML fragment that needs no style sheet."""
        tables = [columns_to_html(self.title, [HEADINGS, *lines_of(self.casts)], right=RIGHT)]
        if self.casts:
            tables += [columns_to_html(f"by {head[0]}", [head, *rest], right=TOTALS) for head, *rest in self._totals()]
        return "\n".join(tables)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        if not self.casts:
            return self.title
        tables = [aligned((HEADINGS, *cut(lines_of(self.casts, WIDTH))), right=RIGHT)]
        tables += [aligned(cut(lines), right=TOTALS) for lines in self._totals()]
        return "\n\n".join([self.title, *tables])

    def __rich__(self) -> Any:
        """What `rich.print` prints: the same in colours, as wide as the terminal."""
        return rich_tables(self.title, self.casts, self._totals())

    def _totals(self) -> list[list[tuple[str, ...]]]:
        """The totals for each class and each line, with their headings."""
        places = places_of(self.casts)
        kinds = [(kind, str(total.casts), shown(total.bytes)) for kind, total in self.by_class.items()]
        lines = [(places[at], str(total.casts), shown(total.bytes)) for at, total in self.by_line.items()]
        return [[("class", "casts", "bytes"), *kinds], [("line", "casts", "bytes"), *lines]]


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
        rows += [("bytes", f"{shown(cast.bytes)} x {times}"), ("reason", cast.reason)]
        rows += [("fix", cast.fix)] if cast.fix else []
        if cast.decision is not None:
            rows += [
                ("rules" if number == 0 else "", line) for number, line in enumerate(str(cast.decision).split("\n"))
            ]
        shape = ",".join(map(str, cast.shape))
        return Document(f"{cast.source}[{shape}] -> {cast.target}", cast.kind, tuple(rows), ok=cast.kind != "promotion")

    def __str__(self) -> str:
        return document_to_text(self.document())

    def _repr_html_(self) -> str:
        return document_to_html(self.document())


def _total(casts: Sequence[Cast]) -> CastTotal:
    return CastTotal(len(casts), sum(cast.total_bytes for cast in casts))


def _totals(casts: Sequence[Cast], key: Callable[[Cast], str]) -> dict[str, CastTotal]:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for cast in casts:
        counts[key(cast)] += 1
        sizes[key(cast)] += cast.total_bytes
    return {name: CastTotal(counts[name], sizes[name]) for name in counts}


def _data(total: CastTotal) -> dict[str, int | str]:
    return {"casts": total.casts, "bytes": plain(total.bytes)}
