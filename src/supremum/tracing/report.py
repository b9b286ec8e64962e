"""The casts of a program: each cast, and the report on all of them as tables, plain data and explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from html import escape
from typing import Any, TypeAlias

from supremum.argument_checks import chosen
from supremum.errors import ArgumentError
from supremum.render import Document, aligned, columns_to_html, document_to_html, document_to_text, shortened
from supremum.reports import SHOWN, Report, plain_data, plural, short_names, short_place
from supremum.tracing.cast import CLASSES, DELIBERATE, Cast
from supremum.tracing.causes import Cause, causes_of, lines_of
from supremum.tracing.sizes import largest_first, plain, shape_text, size_text

_Table: TypeAlias = tuple[str, Sequence[tuple[str, ...]], frozenset[int]]
"""A title, rows of texts with the headings first, and the columns of numbers."""

_HEADINGS = ("#", "bytes", "times", "from", "to", "shape", "class", "line", "expression")
_LONGEST = 60
"""The longest expression that plain text shows, in characters."""
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

    def to_dict(self) -> dict[str, Any]:
        """The total as plain data for JSON."""
        return {"casts": self.casts, "bytes": plain(self.bytes)}


@dataclass(frozen=True, slots=True, repr=False)
class CastReport(Report):
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
        sections: dict[str, list[Cast]] = {"conversions": [], "steps of libraries": [], "asked for": []}
        for cast in self.others:
            is_conversion, is_deliberate = cast.kind == "conversion", cast.kind in DELIBERATE
            section = "conversions" if is_conversion else "asked for" if is_deliberate else "steps of libraries"
            sections[section].append(cast)
        return sections

    @property
    def conversions(self) -> str:
        """One line for all conversions, because programs of floats have them everywhere; empty without any."""
        casts = self.sections["conversions"]
        if not casts:
            return ""
        total, names = _total(casts), names_of(self.casts)
        on = lines_of(short_place(names, cast) for cast in casts)
        return f"{plural(total.casts, 'cast')} of bools and integers, {size_text(total.bytes)} bytes, on {on}"

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
        classes, patterns, packages = tuple(kinds), tuple(files), tuple(libraries)
        for kind in classes:
            chosen("class of casts", kind, CLASSES)
        return self.where(
            lambda cast: (
                (not classes or cast.kind in classes)
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
            "total": plain_data(self.total),
            "by_class": plain_data(self.by_class),
            "by_line": plain_data(self.by_line),
        }

    @property
    def title(self) -> str:
        """The number of casts, their bytes, and their classes."""
        if not self.casts:
            return "0 casts"
        classes = ", ".join(f"{total.casts} {kind}" for kind, total in self.by_class.items())
        return f"{plural(len(self.casts), 'cast')}, {size_text(self.total.bytes)} bytes ({classes})"

    def to_html(self) -> str:
        """The report as an HTML fragment that needs no style sheet; `casts_page` makes a page of reports."""
        conversions = self.conversions
        tables = [*_causes_table(self.casts, self.causes), *self._tables()]
        parts = [columns_to_html(title, lines, right=right) for title, lines, right in tables]
        parts += [f"<div>{escape(conversions)}</div>"] if conversions else []
        return "\n".join(parts) or f"<div><b>{self.title}</b></div>"

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return "\n".join(text for text, _ in self._styled_lines(_COLUMNS))

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """What `rich.print` prints: the same in colour, as wide as the terminal."""
        from rich.text import Text  # rich is needed only to print

        for text, style in self._styled_lines(options.max_width):
            yield Text(text, style=style)

    def _styled_lines(self, width: int) -> list[tuple[str, str]]:
        """The lines of the report, each with its style for rich.

        Args:
            width: the width of the causes; tables are as wide as they need to be.
        """
        parts = [[(self.title, "bold")]]
        parts += [[(text, _ROLES[role]) for role, text in lines] for lines in self._causes(width)]
        if conversions := self.conversions:
            parts.append([(conversions, "")])
        for title, rows, right in self._tables():
            rows = _first_rows(rows)
            styles = [next((_COLOURS[text] for text in row if text in _COLOURS), "") for row in rows]
            lines = aligned(rows, right=right).splitlines()
            parts.append([(title, "bold"), *zip(lines, styles, strict=True)])
        return [line for part in parts for line in (*part, ("", ""))][:-1]

    def _causes(self, width: int) -> list[list[tuple[str, str]]]:
        """The causes as lines of a width, each with its role."""
        causes, names, numbers = self.causes, names_of(self.casts), self._numbers()
        if not causes:
            return []
        count = sum(len(cause.casts) + len(cause.follow) for cause in causes)
        lines = "this line" if len(causes) == 1 else f"these {len(causes)} lines"
        described = [[("head", f"{plural(count, 'cast')} {'comes' if count == 1 else 'come'} from {lines}:")]]
        described += [cause.lines(names, numbers, width) for cause in causes[:_SHOWN_CAUSES]]
        if len(causes) > _SHOWN_CAUSES:
            described.append([("text", f"  and {plural(len(causes) - _SHOWN_CAUSES, 'line')} more")])
        return described

    def _tables(self) -> list[_Table]:
        """Tables of the casts without a cause and of the totals."""
        sections, names, numbers = self.sections, names_of(self.casts), self._numbers()
        tables = [
            (title, [_HEADINGS, *_lines_of(sections[title], names, numbers)], frozenset({0, 1, 2}))
            for title in ("steps of libraries", "asked for")
        ]
        tables += [
            ("by class", _lines_of_totals("class", self.by_class), frozenset({1, 2})),
            ("by line", self.line_totals(), frozenset({1, 2})),
        ]
        return [each for each in tables if len(each[1]) > 1]

    def line_totals(self) -> list[tuple[str, ...]]:
        """The totals of lines as texts: the headings, and for each line its short name, casts and bytes."""
        names = names_of(self.casts)
        places = {cast.where: short_place(names, cast) for cast in self.casts}
        return _lines_of_totals("line", {places[where]: total for where, total in self.by_line.items()})


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
        times = "?" if cast.times is None else str(cast.times)
        calls = [f"{at} ({at.function}): {text}" for at, text in reversed(cast.path[:-1])]
        sections = {
            "expression": [cast.expression or "-"],
            "line": [cast.where],
            "called from": calls,
            "operands": cast.operands,
            "scope": [cast.scope] if cast.scope else [],
            "bytes": [f"{size_text(cast.bytes)} x {times}"],
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
        return Document(
            f"{cast.source}{shape_text(cast.shape)} -> {cast.target}", cast.kind, rows, ok=cast.kind != "promotion"
        )

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


def _lines_of_totals(name: str, totals: Mapping[str, CastTotal]) -> list[tuple[str, ...]]:
    return [(name, "casts", "bytes"), *((key, str(each.casts), size_text(each.bytes)) for key, each in totals.items())]


def names_of(casts: Sequence[Cast]) -> dict[str, str]:
    """The short names of the files that a report mentions.

    Args:
        casts: the casts of the report.
    """
    known = [each for cast in casts for each in (cast, cast.cause, cast.asked_for) if each is not None]
    known += [each.asked_for for each in known if each.asked_for is not None]
    hidden = [each.at.file for cast in known for each in cast.hides]
    return short_names([*(cast.file for cast in known), *hidden])


def _causes_table(casts: Sequence[Cast], causes: Sequence[Cause]) -> list[_Table]:
    if not causes:
        return []
    names = names_of(casts)
    with_costs = any(cause.costs for cause in causes)
    lines = [("line", "expression", "cast", *(["cost"] if with_costs else []), "fix")]
    for cause in causes:
        costs = ["; ".join(map("".join, cause.costs))] if with_costs else []
        place = short_place(names, cause.first)
        lines.append((place, cause.first.expression, cause.change, *costs, "; ".join(cause.fixes)))
    return [("what widened first", lines, frozenset())]


def _lines_of(casts: Sequence[Cast], names: Mapping[str, str], numbers: Mapping[int, int]) -> list[tuple[str, ...]]:
    """One row for each cast. Casts that look the same share a row, which has the number of the first."""
    merged: dict[tuple[str, ...], list[Cast]] = {}
    for cast in casts:
        times, dtypes = "?" if cast.times is None else str(cast.times), (str(cast.source), str(cast.target))
        key = (times, *dtypes, shape_text(cast.shape), cast.kind, short_place(names, cast), cast.expression)
        merged.setdefault(key, []).append(cast)
    lines: list[tuple[str, ...]] = []
    for (times, *rest), group in merged.items():
        runs = times if len(group) == 1 else f"{len(group)} x {times}"
        lines.append((str(numbers.get(id(group[0]), "")), size_text(_total(group).bytes), runs, *rest))
    return lines


def _first_rows(lines: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The headings and the first rows, with short expressions, followed by the number of the rest."""
    shown_lines = [(*line[:-1], shortened(line[-1], _LONGEST)) for line in lines[: SHOWN + 1]]
    rest = len(lines) - SHOWN - 1
    if rest > 0:
        shown_lines.append((f"+{rest}", *("..." for _ in lines[0][1:])))
    return shown_lines
