"""The casts of a program by what caused them: the expressions that widened first, each with the casts that follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from supremum.reports import plural, short_place
from supremum.tracing.cast import DELIBERATE, OR, Cast, ErrorChange, HiddenPromotion
from supremum.tracing.sizes import largest_first, plain, size_text

_LINES = 3
_HIDDEN = 5


@dataclass(frozen=True, slots=True)
class Cause:
    """An expression that casts first, and the casts that follow from it.

    Args:
        casts: the casts of the expression.
        follow: the casts that would be gone if the expression stayed in its narrower dtype.

    >>> import jax.numpy as jnp
    >>> from supremum.tracing import casts
    >>> report = casts(lambda x, w, v: (x * w) @ v)(
    ...     jnp.ones(4, "bfloat16"), jnp.ones(4), jnp.ones(4, "bfloat16")
    ... )
    >>> [
    ...     (cause.first.expression, [cast.expression for cast in cause.follow])
    ...     for cause in report.causes
    ... ]
    [('x * w', ['(x * w) @ v'])]
    """

    casts: tuple[Cast, ...]
    follow: tuple[Cast, ...]

    @property
    def first(self) -> Cast:
        """The first cast of the expression, which stands for it."""
        return self.casts[0]

    @property
    def fixes(self) -> tuple[str, ...]:
        """What to write instead; several if the operands differ, as in float16 + bfloat16."""
        return tuple(dict.fromkeys(cast.fix for cast in self.casts if cast.fix))

    @property
    def hides(self) -> tuple[HiddenPromotion, ...]:
        """The promotions that would be left if the expression stayed in its narrower dtype."""
        return tuple(dict.fromkeys(hidden for cast in self.casts for hidden in cast.hides))

    @property
    def total_bytes(self) -> int:
        """The bytes that all these casts read and write when the program runs once."""
        return sum(cast.total_bytes for cast in (*self.casts, *self.follow))

    @property
    def extra_bytes(self) -> int | None:
        """The bytes by which values are wider because of the expression; None without `cost=True`."""
        known = [cast.extra_bytes for cast in self.casts if cast.extra_bytes is not None]
        return sum(known) if known else None

    @property
    def narrow_error(self) -> ErrorChange | None:
        """The error of the result with the expression in its narrower dtype; None without `promotion_costs`."""
        return self.first.narrow_error

    @property
    def costs(self) -> tuple[tuple[str, str], ...]:
        """What the expression costs in bytes, and what its narrower dtype would cost in error, as far as it is known.

        Each is a label and a text, which together make a sentence.
        """
        costs: list[tuple[str, str]] = []
        if self.extra_bytes is not None:
            text = f"{size_text(self.extra_bytes)} bytes more in values that are wider than in {self.first.source}"
            costs.append(("costs ", text))
        if self.narrow_error is not None:
            costs.append(("undone, ", str(self.narrow_error)))
        return tuple(costs)

    @property
    def change(self) -> str:
        """The dtypes, and how many casts follow."""
        pairs = dict.fromkeys(f"{cast.source} -> {cast.target}" for cast in self.casts)
        many = f", {len(self.casts)} casts" if len(self.casts) > len(pairs) else ""
        follow = f"; {plural(len(self.follow), 'cast')} follow{'s' * (len(self.follow) == 1)}" if self.follow else ""
        return f"{', '.join(pairs)}{many}{follow}"

    def lines(self, names: Mapping[str, str], numbers: Mapping[int, int], width: int) -> list[tuple[str, str]]:
        """The description, in lines of at most a width, each with its role: `"head"`, `"text"` or `"fix"`.

        Args:
            names: the short names of files.
            numbers: the number of each cast in the report, by its `id`.
            width: the width; a word that is longer gets a line of its own.
        """
        first = self.first
        lines = _wrapped("head", "", f"{short_place(names, first)}  {first.expression}", width)
        name = f"cast {numbers[id(first)]}: " if id(first) in numbers else ""
        on = lines_of(short_place(names, cast) for cast in self.follow if cast.place != first.place)
        lines += _wrapped("text", "", f"{name}{first.category}, {self.change}{', on ' if on else ''}{on}", width)
        for label, text in self.costs:
            lines += _wrapped("text", label, text, width)
        if first.asked_for is not None:
            asked = first.asked_for
            text = f"{short_place(names, asked)} asks for {asked.target}: {asked.expression}"
            lines += _wrapped("text", "because ", text, width)
        for fix in self.fixes:
            lines += _fix_lines(fix, "", width)
        for hidden in self.hides[:_HIDDEN]:
            lines += _wrapped("text", "then ", f"{short_place(names, hidden.at)} promotes: {hidden.expression}", width)
            lines += _fix_lines(hidden.fix, "  ", width)
        if len(self.hides) > _HIDDEN:
            lines += _wrapped("text", "then ", f"{plural(len(self.hides) - _HIDDEN, 'line')} more", width)
        return lines

    def to_dict(self, numbers: Mapping[int, int]) -> dict[str, Any]:
        """The cause as plain data for JSON.

        Args:
            numbers: the number of each cast in the report, by its `id`; others are left out.
        """
        return {
            "line": self.first.where,
            "expression": self.first.expression,
            "casts": [numbers[id(cast)] for cast in self.casts if id(cast) in numbers],
            "follow": [numbers[id(cast)] for cast in self.follow if id(cast) in numbers],
            "fixes": list(self.fixes),
            **({} if self.extra_bytes is None else {"extra_bytes": plain(self.extra_bytes)}),
            **({} if self.narrow_error is None else {"narrow_error": self.narrow_error.to_dict()}),
        }


def causes_of(casts: Sequence[Cast]) -> tuple[tuple[Cause, ...], tuple[Cast, ...]]:
    """Group casts by their causes.

    Args:
        casts: the casts of a report.

    Returns:
        The causes, those that move the most bytes first, and all other casts, with those last that the user asked for.
    """
    groups: dict[Hashable, tuple[dict[int, Cast], list[Cast]]] = {}
    others: list[Cast] = []
    for cast in casts:
        if cast.times == 0 or cast.kind in DELIBERATE:
            others.append(cast)
            continue
        root = cast.cause or cast
        first, follow = groups.setdefault((root.place, root.kind), ({}, []))
        first[id(root)] = root
        if cast is not root:
            follow.append(cast)
    causes: list[Cause] = []
    for first, follow in groups.values():
        cause = Cause(tuple(first.values()), tuple(follow))
        if cause.first.kind == "promotion" or any(cast.place != cause.first.place for cast in follow):
            causes.append(cause)
        else:  # a step inside of a library, with no effect elsewhere
            others += [*first.values(), *follow]
    order = {id(cast): number for number, cast in enumerate(casts)}
    others.sort(key=lambda cast: (cast.kind in DELIBERATE, order.get(id(cast), 0)))
    return tuple(sorted(causes, key=lambda cause: largest_first(cause.total_bytes))), tuple(others)


def lines_of(places: Iterable[str]) -> str:
    """The lines that occur most often, and the number of the others.

    >>> lines_of(["a.py:1", "a.py:2", "a.py:2", "a.py:3", "a.py:4"])
    'a.py:2, a.py:1, a.py:3 and 1 line more'
    """
    on = [line for line, _ in Counter(places).most_common()]
    rest = f" and {plural(len(on) - _LINES, 'line')} more" if len(on) > _LINES else ""
    return f"{', '.join(on[:_LINES])}{rest}"


def _fix_lines(fix: str, indent: str, width: int) -> list[tuple[str, str]]:
    """A fix, each of its choices on lines of its own."""
    choices = fix.split(OR)
    labels = ["fix: ", *["or:  "] * (len(choices) - 1)]
    return [
        line
        for label, choice in zip(labels, choices, strict=True)
        for line in _wrapped("fix", indent + label, choice, width)
    ]


def _wrapped(role: str, label: str, text: str, width: int) -> list[tuple[str, str]]:
    indent = " " * 2 if role != "head" else ""
    lines = wrap(text, width, initial_indent=indent + label, subsequent_indent=indent + " " * 4, break_on_hyphens=False)
    return [(role, line) for line in lines]
