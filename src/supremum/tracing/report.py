"""The casts of a program: each cast, and the report on all of them as tables, plain data and explanations."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from supremum.decisions import Decision, OperandCast
from supremum.errors import ArgumentError
from supremum.formats import DType, as_format
from supremum.jaxprs import Position
from supremum.render import Document, aligned, columns_to_html, document_to_html, document_to_text

CastClass: TypeAlias = Literal["promotion", "explicit", "library", "autocast", "unknown"]
CLASSES: tuple[CastClass, ...] = get_args(CastClass)
"""The user's expression mixes dtypes; the user asks for the cast; JAX or a library casts; autocast inserted it; none of
these is known."""
_HEADINGS = ("#", "bytes", "times", "from", "to", "shape", "class", "line", "expression")
_WIDTH = 60
"""The longest expression that plain text shows, in characters."""
_SHOWN = 40
# ANSI colours follow the terminal's theme.
_COLOURS = {"promotion": "red", "explicit": "green", "library": "dim", "autocast": "blue", "unknown": "yellow"}


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion of a value from one dtype to another.

    Args:
        source: the dtype before.
        target: the dtype after.
        shape: the shape of the value; symbolic sizes are expressions.
        weak: whether the value before was weak, like a Python number.
        times: how often the cast runs when the program runs once: 0 if nothing depends on it (JAX then drops it); None
            if only the run can tell.
        kind: `"promotion"` if the user's expression mixes dtypes, `"explicit"` if it asks for the cast, `"library"`
            inside JAX or an installed package, `"autocast"` if `autocast` inserted it, or `"unknown"`.
        reason: why the cast is in that class.
        file: the file of the user's expression. If no user code led there, a library's file, or empty.
        line: the line in that file.
        expression: the source text, on one line.
        path: the user's calls that led to the cast, outermost first, each with its text. The last one is the
            expression.
        operands: the operands of the expression, with dtype and shape.
        scope: the enclosing `jax.named_scope` blocks, such as `"encoder/norm"`.
        operation: the primitive: `convert_element_type`, or one that takes operands of two dtypes and casts them.
        fix: for a promotion, what to write instead.
        decision: for a promotion, what the rules decide about the operands; None if they do not explain the cast.

    >>> import jax.numpy as jnp
    >>> from supremum.tracing import casts
    >>> cast = casts(lambda x, w: x * w)(jnp.ones(4, "bfloat16"), jnp.ones(4))[0]
    >>> cast.kind, cast.source, cast.target, cast.bytes, cast.expression
    ('promotion', dtype(bfloat16), dtype('float32'), 24, 'x * w')
    """

    source: DType
    target: DType
    shape: tuple[int, ...]
    weak: bool
    times: int | None
    kind: CastClass
    reason: str
    file: str
    line: int
    expression: str
    path: tuple[tuple[Position, str], ...]
    operands: tuple[str, ...]
    scope: str
    operation: str
    fix: str
    decision: Decision | None = field(repr=False, compare=False)

    @property
    def bytes(self) -> int:
        """Bytes read and written by one run."""
        return math.prod(self.shape) * (self.source.itemsize + self.target.itemsize)

    @property
    def total_bytes(self) -> int:
        """Bytes of all runs; an unknown number of runs counts as one."""
        return self.bytes * (1 if self.times is None else self.times)

    @property
    def widening(self) -> bool:
        """Whether the target dtype has more bits."""
        return as_format(self.target).bits > as_format(self.source).bits

    @property
    def lossy(self) -> bool:
        """Whether the target dtype cannot represent every value of the source dtype."""
        return OperandCast(self.source, self.target).lossy

    @property
    def where(self) -> str:
        """The user's line, as `file:line`; `"-"` if there is none."""
        return f"{self.file}:{self.line}" if self.file else "-"

    def to_dict(self) -> dict[str, Any]:
        """The cast as plain data for JSON."""
        return {
            "from": str(self.source),
            "to": str(self.target),
            "shape": [plain(length) for length in self.shape],
            "weak": self.weak,
            "bytes": plain(self.bytes),
            "times": None if self.times is None else plain(self.times),
            "class": self.kind,
            "reason": self.reason,
            "file": self.file,
            "line": self.line,
            "expression": self.expression,
            "path": [
                {"file": at.file, "line": at.line, "function": at.function, "expression": text}
                for at, text in self.path
            ],
            "operands": list(self.operands),
            "scope": self.scope,
            "operation": self.operation,
            "fix": self.fix,
        }


@dataclass(frozen=True, slots=True)
class CastTotal:
    """The total of some casts of a program.

    Args:
        casts: the number of casts.
        bytes: the bytes that they read and write when the program runs once; a loop of unknown length counts as one
            iteration. An expression if sizes are symbolic.

    >>> import jax.numpy as jnp
    >>> from supremum.tracing import casts
    >>> casts(lambda x, w: x * w)(jnp.ones(1000, "bfloat16"), jnp.ones(1000)).total
    CastTotal(casts=1, bytes=6000)
    """

    casts: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CastReport:
    """The casts of a program.

    Args:
        casts: the casts, those that move the most bytes first.

    >>> import jax.numpy as jnp
    >>> from supremum.tracing import casts
    >>> report = casts(lambda x, w: (x * w).astype("float16"))(jnp.ones(4, "bfloat16"), jnp.ones(4))
    >>> report.title, len(report.widening)
    ('2 casts, 48 bytes (1 promotion, 1 explicit)', 1)
    >>> [str(cast.target) for cast in report.promotion]
    ['float32']
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
        return "\n".join(columns_to_html(title, lines, right=right) for title, lines, right in self._tables())

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        if not self.casts:
            return self.title
        tables = [aligned([head, *_cut(lines)], right=right) for _, (head, *lines), right in self._tables(_WIDTH)]
        return "\n\n".join([self.title, *tables])

    def __rich__(self) -> Any:
        """What `rich.print` prints: the same tables in colour, as wide as the terminal."""
        from rich.box import SIMPLE_HEAD  # rich is needed only to print
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        drawn: list[Any] = [Text(self.title, style="bold")]
        for _, (headings, *lines), right in self._tables() if self.casts else ():
            table = Table(box=SIMPLE_HEAD, show_edge=False)
            for place, heading in enumerate(headings):
                table.add_column(heading, justify="right" if place in right else "left", overflow="fold")
            for line in _cut(lines):
                style = next((_COLOURS[text] for text in line if text in _COLOURS), "")
                table.add_row(*map(Text, line), style=style)
            drawn.append(table)
        return Group(*drawn)

    def _tables(self, width: int | None = None) -> list[tuple[str, list[tuple[str, ...]], frozenset[int]]]:
        """Tables of the casts and of the totals: the title, the rows with headings first, and the numeric columns."""
        tables = [(self.title, [_HEADINGS, *_lines_of(self.casts, width)], frozenset({0, 1, 2}))]
        places = _places_of(self.casts)
        by_line = {places[at]: total for at, total in self.by_line.items()}
        for name, totals in (("class", self.by_class), ("line", by_line)) if self.casts else ():
            rows = ((key, str(total.casts), shown(total.bytes)) for key, total in totals.items())
            tables.append((f"by {name}", [(name, "casts", "bytes"), *rows], frozenset({1, 2})))
        return tables


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why there is a cast.

    Args:
        cast: the cast.

    >>> import jax.numpy as jnp
    >>> from supremum.tracing import casts
    >>> report = casts(lambda x, w: x * w)(jnp.ones(4, "bfloat16"), jnp.ones(4))
    >>> report.explain(0).document().title, report.explain(0).cast is report[0]
    ('bfloat16[4] -> float32', True)
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


def shown(size: Any) -> str:
    """Format a size for reports.

    Args:
        size: an int, or an expression of `jax.export.symbolic_shape`.

    >>> import jax.export
    >>> (batch,) = jax.export.symbolic_shape("batch")
    >>> shown(4096), shown(4 * batch)
    ('4,096', '4*batch')
    """
    return f"{size:,}" if isinstance(size, int) else str(size)


def plain(size: Any) -> int | str:
    """A size as plain data for JSON: a number, or the expression as text."""
    return size if isinstance(size, int) else str(size)


def largest_first(size: Any) -> tuple[bool, int]:
    """A sort key for sizes. Expressions cannot be compared: they come before all numbers, in their order."""
    return (True, -size) if isinstance(size, int) else (False, 0)
