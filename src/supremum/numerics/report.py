"""The profile of a function: a row for each operation, as text, plain data and HTML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import jax

from supremum.argument_checks import text, whole_number
from supremum.errors import OperandError
from supremum.formats import Format
from supremum.jax_compat import type_text
from supremum.jaxprs import has_tracers
from supremum.numerics.packed_tallies import PackedTallies
from supremum.numerics.pictures import exponents
from supremum.numerics.tallied_results import Slot
from supremum.numerics.tallies import elements_of
from supremum.numerics.value_counts import FormatCounts, ValueCounts, read_counts, sum_counts
from supremum.numerics.wording import every, not_finite, worst
from supremum.reports import (
    MOST_DRAWN,
    Column,
    OperationRow,
    Report,
    RowTable,
    exponents_picture,
    plural,
    rows_by,
    short_names,
    short_place,
)
from supremum.tracing import RowFields

_LEGEND = (
    "For each format the worst of: values that overflow (to inf, nan, or the largest number, max), that are flushed to "
    "zero (0), and that become subnormal (sub)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow(OperationRow):
    """An operation and the values that it made; see `reports.OperationRow` for the fields of every operation.

    Args:
        types: the types of its floating-point results, such as `"float32[8,128]"`.
        values: the values.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import profile
    >>> row = profile(lambda x: jnp.exp(x), formats=["float16"])(
    ...     jnp.array([1.0, 12.0])
    ... ).rows[0]
    >>> row.expression, row.primitive, row.types, row.values.largest
    ('jnp.exp(x)', 'exp', ('float32[2]',), 162754.796875)
    """

    types: tuple[str, ...]
    values: ValueCounts

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data for JSON."""
        row = OperationRow.to_dict(self)
        return row | row.pop("values")


@partial(jax.tree_util.register_dataclass, data_fields=["outputs", "tallies"], meta_fields=["slots", "formats"])
@dataclass(frozen=True, eq=False, repr=False)
class Profile(Report):
    """The values that the operations of a function made, and what formats would do to them.

    It is a pytree, so that a function that returns it can be jitted; its rows are known once the function returned.

    Args:
        outputs: what the function returned.
        tallies: the counts of each slot.
        slots: the results that were counted.
        formats: the formats.

    >>> import jax, jax.numpy as jnp
    >>> from supremum.numerics import profile
    >>> def loss(w, x):
    ...     with jax.named_scope("layer"):
    ...         y = x @ w
    ...     return jnp.exp(y).sum()
    >>> report = profile(loss, formats=["float16"])(
    ...     jnp.full((2, 2), 3.0), jnp.full((1, 2), 2.0)
    ... )
    >>> report
    Profile(3 operations, float16)
    >>> [row.primitive for row in report.matching("layer").rows], report.outputs
    (['dot_general'], Array(325509.6, dtype=float32))
    >>> {name: values.largest for name, values in report.by("scope").items()}
    {'': 325509.59375, 'layer': 12.0}
    """

    outputs: Any
    tallies: PackedTallies
    slots: tuple[Slot, ...]
    formats: tuple[Format, ...]

    @cached_property
    def rows(self) -> tuple[ProfileRow, ...]:
        """A row for each operation, those that suffer most first; see `ValueCounts.severity`.

        Raises:
            OperandError: while JAX traces the function that returns the profile.
        """
        if has_tracers(self.tallies):
            raise OperandError("the rows of a profile are known after the run; return the profile from the function")
        fields = RowFields()
        rows: list[ProfileRow] = []
        for _, group in groupby(zip(self.slots, self.tallies.fetch(), strict=True), lambda pair: id(pair[0].site)):
            pairs = list(group)
            site = pairs[0][0].site
            types = tuple(type_text(slot.aval) for slot, _ in pairs)
            counts = [read_counts(tally, slot.questions, elements_of(slot.aval)) for slot, tally in pairs]
            values = counts[0] if len(counts) == 1 else sum_counts(counts, counts[0].runs)
            rows.append(ProfileRow(**fields.of(site), types=types, values=values))
        # The sort is stable: operations that suffer alike stay in program order.
        return tuple(sorted(rows, key=lambda row: row.values.severity, reverse=True))

    def __len__(self) -> int:
        return len({id(slot.site) for slot in self.slots})

    def by(self, key: str) -> dict[str, ValueCounts]:
        """The values of all operations of a line, scope or primitive together, those that suffer most first.

        Args:
            key: `"line"`, `"scope"` or `"primitive"`.

        Raises:
            UnknownNameError: for another key.
        """
        groups = rows_by(key, self.rows)
        totals = {name: sum_counts([row.values for row in rows]) for name, rows in groups.items()}
        return dict(sorted(totals.items(), key=lambda item: item[1].severity, reverse=True))

    def matching(self, path: str) -> Profile:
        """Only the operations in a scope and in the scopes inside it.

        Args:
            path: the path of the scope; shell patterns such as `"encoder/*/norm"` work too.
        """
        patterns = text("path", path), f"{path}/*"
        kept = [
            index
            for index, slot in enumerate(self.slots)
            if any(fnmatchcase(slot.site.path, pattern) for pattern in patterns)
        ]
        slots = tuple(self.slots[index] for index in kept)
        return Profile(self.outputs, self.tallies.only(kept), slots, self.formats)

    def to_dict(self) -> dict[str, Any]:
        """The profile as plain data for JSON, without the outputs."""
        return {"formats": [row.name for row in self.formats], "rows": [row.to_dict() for row in self.rows]}

    @property
    def title(self) -> str:
        """The number of operations, and the formats."""
        return ", ".join([plural(len(self), "operation"), *(row.name for row in self.formats)])

    def _table(self, outcome: Callable[[FormatCounts], str]) -> RowTable:
        return RowTable(self.rows, [*_COLUMNS, *(_column(each, outcome) for each in self.formats)])

    def __str__(self) -> str:
        legend = [_LEGEND] if self.formats and self.slots else []
        return self._table(worst).to_text(self.title, *legend)

    def to_svg(self, rows: int = 20) -> str:
        """Draw the histograms of binary exponents over the ranges of the formats, as a self-contained SVG.

        A bar is as high as the logarithm of its count, so that a single value can be seen. Below the bars, a strip for
        each format shows its range, and the values that it cannot hold.

        Args:
            rows: the most operations to draw; those that suffer most come first.

        Raises:
            OperandError: if the profile was made without `histogram=True`.

        >>> import jax.numpy as jnp
        >>> from supremum.numerics import profile
        >>> report = profile(jnp.exp, histogram=True)(jnp.array([1.0, 12.0]))
        >>> report.to_svg().splitlines()[1]
        '<title>1 operation, float16, bfloat16, float8_e4m3fn, float8_e5m2</title>'
        """
        shown = self.rows[: whole_number("rows", rows, 1, MOST_DRAWN)]
        if shown and any(row.values.exponents is None for row in shown):
            raise OperandError("this profile has no histograms; make it with histogram=True")
        names = short_names(row.file for row in self.rows)
        rest = len(self.rows) - len(shown)
        drawn = [
            (short_place(names, row), row.expression or row.primitive, exponents(row.values, self.formats))
            for row in shown
        ]
        return exponents_picture(self.title, [f"{rest} more operations are not shown."] if rest else [], drawn)

    def _repr_html_(self) -> str:
        table = self._table(every).to_html(self.title)
        if not any(row.values.exponents for row in self.rows):
            return table
        return f"<div>{self.to_svg()}{table}</div>"


def _magnitude(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


_COLUMNS = (
    Column("operation", lambda row: row.primitive),
    Column("runs", lambda row: str(row.values.runs), right=True),
    Column("least", lambda row: _magnitude(row.values.least), right=True),
    Column("largest", lambda row: _magnitude(row.values.largest), right=True),
    Column("not finite", lambda row: not_finite(row.values), optional=True),
)


def _column(target: Format, outcome: Callable[[FormatCounts], str]) -> Column:
    """What happens to the values in a format."""
    return Column(target.short_name, lambda row: outcome(row.values.formats[target.name]))
