"""The casts of a program: each cast, and the report on all of them as tables, plain data and explanations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from html import escape
from pathlib import Path
from typing import Any

from supremum.argument_checks import chosen
from supremum.errors import ArgumentError
from supremum.render import Document, aligned, columns_to_html, document_to_html, document_to_text
from supremum.tracing.cast import CLASSES, DELIBERATE, Cast
from supremum.tracing.causes import Cause, causes_of, lines_of, plural
from supremum.tracing.sizes import largest_first, plain, shown

_HEADINGS = ("#", "bytes", "times", "from", "to", "shape", "class", "line", "expression")
_WIDTH = 60
"""The longest expression that plain text shows, in characters."""
_SHOWN = 40
# ANSI colours follow the terminal's theme.
_COLOURS = {
    "promotion": "red", "conversion": "dim", "explicit": "green", "library": "dim", "autocast": "blue",
    "unknown": "yellow",
}  # fmt: skip
_ROLES = {"head": "bold", "text": "", "fix": "green"}
_COLUMNS = 80
_SHOWN_CAUSES = 20


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
    >>> report = casts(lambda x, w: (x * w).astype("float16"))(
    ...     jnp.ones(4, "bfloat16"), jnp.ones(4)
    ... )
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

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The expressions that widened first, most bytes first, each with the casts that follow from it.

        >>> import jax.numpy as jnp
        >>> from supremum.tracing import casts
        >>> program = lambda x, scale, w: (x * scale) @ w
        >>> (cause,) = casts(program)(
        ...     jnp.ones(4, "bfloat16"), jnp.float32(2), jnp.ones((4, 4), "bfloat16")
        ... ).causes
        >>> cause.first.expression, [cast.expression for cast in cause.follow]
        ('x * scale', ['(x * scale) @ w'])
        """
        return causes_of(self.casts)[0]

    @property
    def others(self) -> CastReport:
        """The casts without a cause, which are steps of libraries and, last, the casts that the program asks for."""
        return CastReport(causes_of(self.casts)[1])

    @property
    def sections(self) -> dict[str, list[Cast]]:
        """The casts without a cause, of bools and integers, of libraries, and those that the program asks for.

        >>> import jax.numpy as jnp
        >>> from supremum.tracing import casts
        >>> report = casts(lambda x, done: x * (1 - done))(
        ...     jnp.ones(4), jnp.ones(4, "int32")
        ... )
        >>> [(name, len(found)) for name, found in report.sections.items()]
        [('conversions', 1), ('steps of libraries', 0), ('asked for', 0)]
        """
        found: dict[str, list[Cast]] = {"conversions": [], "steps of libraries": [], "asked for": []}
        for cast in self.others:
            is_conversion, is_deliberate = cast.kind == "conversion", cast.kind in DELIBERATE
            section = "conversions" if is_conversion else "asked for" if is_deliberate else "steps of libraries"
            found[section].append(cast)
        return found

    @property
    def conversions(self) -> str:
        """One line for all conversions, because programs of floats have them everywhere; empty without any."""
        found = self.sections["conversions"]
        if not found:
            return ""
        total, places = _total(found), places_of(self.casts)
        on = lines_of(places[cast.where] for cast in found)
        return f"{plural(total.casts, 'cast')} of bools and integers, {shown(total.bytes)} bytes, on {on}"

    def select(
        self, *, kinds: Iterable[str] = (), files: Iterable[str] = (), libraries: Iterable[str] = ()
    ) -> CastReport:
        """Only the casts of some classes, files and libraries.

        Args:
            kinds: classes; all if empty.
            files: shell patterns of file names, such as `"*/model.py"`; all if empty.
            libraries: names of packages whose lines cast, such as `"jax"` or `"flax"`; all if empty.

        Raises:
            UnknownNameError: for an unknown class.

        >>> import jax.numpy as jnp
        >>> from supremum.tracing import casts
        >>> report = casts(lambda x, w: jnp.mean(x) * w)(
        ...     jnp.ones(4, "bfloat16"), jnp.ones(4)
        ... )
        >>> [cast.kind for cast in report.select(libraries=["jax"])]
        ['library', 'library']
        """
        wanted, patterns, packages = tuple(kinds), tuple(files), tuple(libraries)
        for kind in wanted:
            chosen("class of casts", kind, CLASSES)
        return self.where(
            lambda cast: (
                (not wanted or cast.kind in wanted)
                and (not patterns or any(fnmatch(cast.file, pattern) for pattern in patterns))
                and (not packages or cast.library in packages)
            )
        )

    def _numbers(self) -> dict[int, int]:
        """The number of each cast, by its `id`."""
        return {id(cast): number for number, cast in enumerate(self.casts)}

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON. Casts name others by their number in `"casts"`."""
        numbers = self._numbers()
        return {
            "casts": [
                cast.to_dict() | {"cause": None if cast.cause is None else numbers.get(id(cast.cause))}
                for cast in self.casts
            ],
            "causes": [cause.to_dict(numbers) for cause in self.causes],
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
        return f"{plural(len(self.casts), 'cast')}, {shown(self.total.bytes)} bytes ({classes})"

    def to_html(self) -> str:
        """The report as an HTML fragment that needs no style sheet; `casts_page` makes a page of reports."""
        causes, conversions = self.causes, self.conversions
        tables = [*([_causes_table(self.casts, causes)] if causes else []), *self._tables()]
        parts = [columns_to_html(title, lines, right=right) for title, lines, right in tables]
        parts += [f"<div>{escape(conversions)}</div>"] if conversions else []
        return "\n".join(parts) or f"<div><b>{self.title}</b></div>"

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        if not self.casts:
            return self.title
        causes = ["\n".join(text for _, text in lines) for lines in self._causes(_COLUMNS)]
        tables = [
            "\n".join([title, aligned([head, *_cut(lines)], right=right)])
            for title, (head, *lines), right in self._tables(_WIDTH)
        ]
        return "\n\n".join(filter(None, [self.title, *causes, self.conversions, *tables]))

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """What `rich.print` prints: the same in colour, as wide as the terminal."""
        from rich.box import SIMPLE_HEAD  # rich is needed only to print
        from rich.table import Table
        from rich.text import Text

        yield Text(self.title, style="bold")
        for lines in self._causes(options.max_width) if self.casts else ():
            yield Text()
            for role, text in lines:
                yield Text(text, style=_ROLES[role])
        if conversions := self.conversions:
            yield Text(f"\n{conversions}")
        for title, (headings, *lines), right in self._tables() if self.casts else ():
            yield Text()
            yield Text(title, style="bold")
            table = Table(box=SIMPLE_HEAD, show_edge=False)
            for place, heading in enumerate(headings):
                table.add_column(heading, justify="right" if place in right else "left", overflow="fold")
            for line in _cut(lines):
                style = next((_COLOURS[text] for text in line if text in _COLOURS), "")
                table.add_row(*map(Text, line), style=style)
            yield table

    def _causes(self, width: int) -> list[list[tuple[str, str]]]:
        """The causes as lines of a width, each with its role."""
        causes, places, numbers = self.causes, places_of(self.casts), self._numbers()
        if not causes:
            return []
        count = sum(len(cause.casts) + len(cause.follow) for cause in causes)
        lines = "this line" if len(causes) == 1 else f"these {len(causes)} lines"
        described = [[("head", f"{plural(count, 'cast')} {'comes' if count == 1 else 'come'} from {lines}:")]]
        described += [cause.lines(places, numbers, width) for cause in causes[:_SHOWN_CAUSES]]
        if len(causes) > _SHOWN_CAUSES:
            described.append([("text", f"  and {plural(len(causes) - _SHOWN_CAUSES, 'line')} more")])
        return described

    def _tables(self, width: int | None = None) -> list[tuple[str, list[tuple[str, ...]], frozenset[int]]]:
        """Tables of the casts without a cause and of the totals: title, rows with headings first, numeric columns."""
        tables: list[tuple[str, list[tuple[str, ...]], frozenset[int]]] = []
        places = places_of(self.casts)
        numbers = self._numbers()
        sections = self.sections
        for title in ("steps of libraries", "asked for"):
            rows = _lines_of(sections[title], places, numbers, width)
            if rows:
                tables.append((title, [_HEADINGS, *rows], frozenset({0, 1, 2})))
        by_line = {places[at]: total for at, total in self.by_line.items()}
        for name, totals in (("class", self.by_class), ("line", by_line)) if self.casts else ():
            rows = [(key, str(total.casts), shown(total.bytes)) for key, total in totals.items()]
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
            "follows from": [] if cast.cause is None else [f"{cast.cause.where}: {cast.cause.expression}"],
            "because": [] if cast.asked_for is None else [f"{cast.asked_for.where}: {cast.asked_for.expression}"],
            "hides": [f"{hidden.where}: {hidden.expression}" for hidden in cast.hides],
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


def places_of(casts: Sequence[Cast]) -> dict[str, str]:
    """Map each line that a report mentions, `file:line`, to a short form: only the file's name where that is clear.

    Args:
        casts: the casts of the report.
    """
    known = {id(each): each for cast in casts for each in (cast, cast.cause, cast.asked_for) if each is not None}
    known |= {id(each.asked_for): each.asked_for for each in tuple(known.values()) if each.asked_for is not None}
    at = {(cast.where, cast.file, cast.line) for cast in known.values()}
    at |= {(hidden.where, hidden.at.file, hidden.at.line) for cast in known.values() for hidden in cast.hides}
    names = Counter(Path(file).name for file in {file for _, file, _ in at})
    return {
        where: f"{Path(file).name}:{line}" if file and names[Path(file).name] == 1 else where
        for where, file, line in at
    }


def _causes_table(casts: Sequence[Cast], causes: Sequence[Cause]) -> tuple[str, list[tuple[str, ...]], frozenset[int]]:
    places = places_of(casts)
    with_costs = any(cause.costs for cause in causes)
    rows = [
        (
            places[cause.first.where],
            cause.first.expression,
            cause.change,
            *(["; ".join(map("".join, cause.costs))] if with_costs else []),
            "; ".join(cause.fixes),
        )
        for cause in causes
    ]
    headings = "line", "expression", "cast", *(["cost"] if with_costs else []), "fix"
    return "what widened first", [headings, *rows], frozenset()


def _lines_of(
    casts: Sequence[Cast], places: Mapping[str, str], numbers: Mapping[int, int], width: int | None = None
) -> list[tuple[str, ...]]:
    """One row for each cast. Casts that look the same share a row, which has the number of the first."""
    merged: dict[tuple[str, ...], list[Cast]] = {}
    for cast in casts:
        text = cast.expression
        if width is not None and len(text) > width:
            text = f"{text[: width - 3]}..."
        times, shape = "?" if cast.times is None else str(cast.times), f"[{','.join(map(str, cast.shape))}]"
        key = (times, str(cast.source), str(cast.target), shape, cast.kind, places[cast.where], text)
        merged.setdefault(key, []).append(cast)
    lines: list[tuple[str, ...]] = []
    for (times, *rest), found in merged.items():
        runs = times if len(found) == 1 else f"{len(found)} x {times}"
        total = shown(sum(cast.total_bytes for cast in found))
        lines.append((str(numbers.get(id(found[0]), "")), total, runs, *rest))
    return lines


def _cut(lines: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The first rows, followed by the number of the rest."""
    rest = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([(f"+{rest}", *("..." for _ in lines[0][1:]))] if rest > 0 else [])]
