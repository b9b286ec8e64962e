"""The profile of a function: a row for each operation, as text, plain data and HTML."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from supremum.argument_checks import chosen, text, whole_number
from supremum.errors import OperandError
from supremum.formats import Format, as_format
from supremum.jax_compat import type_text
from supremum.jaxprs import Position, aval_of
from supremum.numerics.instrumented import Slot
from supremum.numerics.pictures import profile_picture
from supremum.numerics.tallies import Tally
from supremum.numerics.value_counts import FormatCounts, ValueCounts, counted, together
from supremum.numerics.wording import every, not_finite, worst
from supremum.render import aligned, columns_to_html, fitted, shortened
from supremum.tracing import Origins, Sources

_SHOWN = 40
_MOST_DRAWN = 1000
_LEGEND = (
    "For each format the worst of: values that overflow (to inf, nan, or the largest number, max), that are flushed to "
    "zero (0), and that become subnormal (sub)."
)


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """An operation and the values that it made.

    Args:
        file: the file of the user's expression. If no user code led there, a library's file, or empty.
        line: the line in that file.
        expression: the source text, on one line.
        scope: the enclosing `jax.named_scope` blocks, such as `"encoder/norm"`; layers of Flax open them.
        primitive: the JAX primitive, such as `"exp"`.
        types: the types of its floating-point results, such as `"float32[8,128]"`.
        backward: whether it belongs to a backward pass.
        values: the values.
        path: the user's calls that led to the operation, outermost first; the last one is the expression.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import profile
    >>> row = profile(lambda x: jnp.exp(x), formats=["float16"])(
    ...     jnp.array([1.0, 12.0])
    ... ).rows[0]
    >>> row.expression, row.primitive, row.types, row.values.largest
    ('jnp.exp(x)', 'exp', ('float32[2]',), 162754.796875)
    """

    file: str
    line: int
    expression: str
    scope: str
    primitive: str
    types: tuple[str, ...]
    backward: bool
    values: ValueCounts
    path: tuple[Position, ...] = ()

    @property
    def where(self) -> str:
        """The user's line, as `file:line`; `"-"` if there is none."""
        return f"{self.file}:{self.line}" if self.file else "-"

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data for JSON."""
        return {
            "file": self.file,
            "line": self.line,
            "expression": self.expression,
            "scope": self.scope,
            "primitive": self.primitive,
            "types": list(self.types),
            "backward": self.backward,
            **self.values.to_dict(),
        }


_KEYS: dict[str, Callable[[ProfileRow], str]] = {
    "line": lambda row: row.where,
    "scope": lambda row: row.scope,
    "primitive": lambda row: row.primitive,
}


@jax.tree_util.register_pytree_node_class
class Profile:
    """The values that the operations of a function made, and what formats would do to them.

    It is a pytree, so that a function that returns it can be jitted; its rows are known once the function returned.

    Args:
        outputs: what the function returned.
        tallies: the counts of each slot.
        slots: the results that were counted.
        formats: the formats.

    Attributes:
        outputs: what the function returned.
        formats: the formats.

    >>> import jax, jax.numpy as jnp
    >>> from supremum.numerics import profile
    >>> def loss(w, x):
    ...     with jax.named_scope("layer"):
    ...         y = x @ w
    ...     return jnp.exp(y).sum()
    >>> found = profile(loss, formats=["float16"])(
    ...     jnp.full((2, 2), 3.0), jnp.full((1, 2), 2.0)
    ... )
    >>> found
    Profile(3 operations, float16)
    >>> [row.primitive for row in found.matching("layer").rows], found.outputs
    (['dot_general'], Array(325509.6, dtype=float32))
    >>> {name: values.largest for name, values in found.by("scope").items()}
    {'': 325509.59375, 'layer': 12.0}
    """

    def __init__(
        self, outputs: Any, tallies: Sequence[Tally], slots: tuple[Slot, ...], formats: tuple[Format, ...]
    ) -> None:
        self.outputs = outputs
        self.formats = formats
        self._tallies = tuple(tallies)
        self._slots = slots

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The arrays, and what is not an array; for JAX."""
        return (self.outputs, self._tallies), (self._slots, self.formats)

    @classmethod
    def tree_unflatten(cls, static: tuple[Any, ...], arrays: tuple[Any, ...]) -> Profile:
        """Build a profile from the parts of `tree_flatten`; for JAX."""
        made = cls.__new__(cls)
        made.outputs, made._tallies = arrays  # JAX also builds trees of values that are not arrays
        made._slots, made.formats = static
        return made

    @cached_property
    def rows(self) -> tuple[ProfileRow, ...]:
        """A row for each operation, those that suffer most first; see `ValueCounts.severity`.

        Raises:
            OperandError: while JAX traces the function that returns the profile.
        """
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(self._tallies)):
            raise OperandError("the rows of a profile are known after the run; return the profile from the function")
        tallies: Any = jax.tree.map(np.asarray, self._tallies)
        origins, sources = Origins(), Sources()
        rows: list[ProfileRow] = []
        for _, group in groupby(zip(self._slots, tallies, strict=True), lambda pair: id(pair[0].site)):
            pairs = list(group)
            site = pairs[0][0].site
            avals = [aval_of(site.equation.outvars[slot.result]) for slot, _ in pairs]
            origin = origins.of(site)
            place = origin.place
            counts = [
                counted(tally, slot.source, slot.questions, self.formats, _elements(aval))
                for (slot, tally), aval in zip(pairs, avals, strict=True)
            ]
            rows.append(
                ProfileRow(
                    "" if place is None else place.file,
                    0 if place is None else place.line,
                    "" if place is None else sources.text(place),
                    site.path,
                    site.equation.primitive.name,
                    tuple(map(type_text, avals)),
                    origin.backward,
                    counts[0] if len(counts) == 1 else together(counts, counts[0].runs),
                    origin.path,
                )
            )
        # The sort is stable: operations that suffer alike stay in program order.
        return tuple(sorted(rows, key=lambda row: row.values.severity, reverse=True))

    def __len__(self) -> int:
        return len({id(slot.site) for slot in self._slots})

    def by(self, key: str) -> dict[str, ValueCounts]:
        """The values of all operations of a line, scope or primitive together, those that suffer most first.

        Args:
            key: `"line"`, `"scope"` or `"primitive"`.

        Raises:
            UnknownNameError: for another key.
        """
        name = _KEYS[chosen("key of a profile", key, _KEYS)]
        groups: dict[str, list[ValueCounts]] = {}
        for row in self.rows:
            groups.setdefault(name(row), []).append(row.values)
        totals = {each: together(counts) for each, counts in groups.items()}
        return dict(sorted(totals.items(), key=lambda item: item[1].severity, reverse=True))

    def matching(self, path: str) -> Profile:
        """Only the operations in a scope and in the scopes inside it.

        Args:
            path: the path of the scope; shell patterns such as `"encoder/*/norm"` work too.
        """
        patterns = text("path", path), f"{path}/*"
        kept = [
            (slot, tally)
            for slot, tally in zip(self._slots, self._tallies, strict=True)
            if any(fnmatchcase(slot.site.path, pattern) for pattern in patterns)
        ]
        return Profile(self.outputs, [tally for _, tally in kept], tuple(slot for slot, _ in kept), self.formats)

    def to_dict(self) -> dict[str, Any]:
        """The profile as plain data for JSON, without the outputs."""
        return {"formats": [row.name for row in self.formats], "rows": [row.to_dict() for row in self.rows]}

    def to_json(self, indent: int | None = 2) -> str:
        """The profile as JSON.

        Args:
            indent: as for `json.dumps`.
        """
        return json.dumps(self.to_dict(), indent=indent)

    @property
    def title(self) -> str:
        """The number of operations, and the formats."""
        operations = f"{len(self)} operation{'' if len(self) == 1 else 's'}"
        return ", ".join([operations, *(row.name for row in self.formats)])

    def __repr__(self) -> str:
        return f"Profile({self.title})"

    def __str__(self) -> str:
        if not self._slots:
            return self.title
        shown = self.rows[:_SHOWN]
        rest = len(self.rows) - len(shown)
        more = [f"... and {rest} more"] if rest else []
        width = shutil.get_terminal_size().columns
        lines = fitted(_lines(shown, self.formats, worst), width, _EXPRESSION)
        table = aligned(lines, right=_RIGHT)
        head = [self.title, *([_LEGEND] if self.formats else [])]
        if max(map(len, table.splitlines())) > width:
            head, table = head[:1], "\n".join(_block(row, self.formats, width) for row in shown)
        wrapped = [line for sentence in head for line in textwrap.wrap(sentence, width)]
        return "\n".join([*wrapped, "", table, *more])

    def to_svg(self, rows: int = 20) -> str:
        """Draw the histograms of binary exponents over the ranges of the formats, as a self-contained SVG.

        A bar is as high as the logarithm of its count, so that a single value can be seen. Below the bars, a strip for
        each format shows its range, and the values that it cannot hold.

        Args:
            rows: the most operations to draw; those that suffer most come first.

        Raises:
            OperandError: if the profile was made with `histogram=False`.
        """
        shown = self.rows[: whole_number("rows", rows, 1, _MOST_DRAWN)]
        if shown and any(row.values.exponents is None for row in shown):
            raise OperandError("this profile has no histograms; make it with histogram=True")
        places = places_of(self.rows)
        rest = len(self.rows) - len(shown)
        drawn = [(places[row.where], row.expression or row.primitive, row.values) for row in shown]
        return profile_picture(self.title, drawn, self.formats, rest)

    def _repr_html_(self) -> str:
        table = columns_to_html(self.title, _lines(self.rows, self.formats, every), right=_RIGHT)
        if not any(row.values.exponents for row in self.rows):
            return table
        return f"<div>{self.to_svg()}{table}</div>"


def places_of(rows: Sequence[ProfileRow]) -> dict[str, str]:
    """Map the line of each row to a short form: only the file's name where that is clear."""
    names = Counter(Path(file).name for file in {row.file for row in rows})
    return {
        row.where: f"{Path(row.file).name}:{row.line}" if row.file and names[Path(row.file).name] == 1 else row.where
        for row in rows
    }


_HEADINGS = ("line", "expression", "operation", "runs", "least", "largest", "not finite")
_RIGHT = frozenset(range(3, 6))
_EXPRESSION = 1


def _lines(
    rows: Iterable[ProfileRow], formats: Sequence[Format], cell: Callable[[FormatCounts], str]
) -> list[tuple[str, ...]]:
    """The headings and a line of texts for each row; a column without any text is left out."""
    rows = tuple(rows)
    places = places_of(rows)
    lines: list[tuple[str, ...]] = [(*_HEADINGS, *(row.short_name for row in formats))]
    for row in rows:
        values = row.values
        lines.append(
            (
                places[row.where],
                row.expression,
                row.primitive,
                str(values.runs),
                "" if values.least is None else f"{values.least:.2g}",
                "" if values.largest is None else f"{values.largest:.2g}",
                not_finite(values),
                *(cell(values.formats[each.name]) for each in formats),
            )
        )
    place = _HEADINGS.index("not finite")
    if not any(line[place] for line in lines[1:]):
        return [(*line[:place], *line[place + 1 :]) for line in lines]
    return lines


def _block(row: ProfileRow, formats: Sequence[Format], width: int) -> str:
    """A row in several lines, for a terminal too narrow for a table."""
    values = row.values
    parts = [f"{row.primitive}, {values.runs} run{'' if values.runs == 1 else 's'}"]
    if values.least is not None and values.largest is not None:
        parts.append(f"magnitudes {values.least:.2g} to {values.largest:.2g}")
    bad = not_finite(values)
    parts += [bad] if bad else []
    parts += [f"{each.short_name} {found}" for each in formats if (found := every(values.formats[each.name]))]
    place = shortened(f"{Path(row.file).name}:{row.line}  {row.expression}" if row.file else "-", width)
    detail = textwrap.wrap("; ".join(parts), width, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([place, *detail])


def _elements(aval: Any) -> int:
    is_complex = as_format(aval.dtype).component is not as_format(aval.dtype)
    return aval.size * (2 if is_complex else 1)
