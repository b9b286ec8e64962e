"""The values that operations made, counted: their range, and what formats would do to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from supremum.numerics.tallies import Level, Questions, Tally
from supremum.numerics.thresholds import (
    exponent_of_rank,
    first_nan_rank,
    last_rank,
    overflow_to,
    thresholds,
    value_of_rank,
)
from supremum.reports import plain_fields


@dataclass(frozen=True, slots=True)
class FormatCounts:
    """What a format would do to some values, under round to nearest, ties to even.

    Args:
        format: the name of the format.
        values: the number of values, those that are zero, infinite or NaN included.
        overflow: the number of finite values that would leave its range.
        overflow_to: what they would become: `"inf"`, `"nan"`, or `"max"`, the largest finite number.
        flushed: the number of values other than zero that would become zero.
        subnormal: the number of values that would become subnormal numbers, which have fewer digits.

    `float8_e8m0fnu` has neither zero nor negative numbers; these count as overflow, because they become NaN.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import profile
    >>> report = profile(jnp.exp, formats=["float16"])(
    ...     jnp.array([1.0, 12.0, -12.0, -20.0])
    ... )
    >>> report.rows[0].values.formats["float16"]
    FormatCounts(format='float16', values=4, overflow=1, overflow_to='inf', flushed=1, subnormal=1)
    """

    format: str
    values: int
    overflow: int
    overflow_to: str
    flushed: int
    subnormal: int

    @property
    def shares(self) -> tuple[float, float, float]:
        """The shares of the values that would overflow, be flushed to zero, and be subnormal; 0 without values."""
        total = max(1, self.values)
        return self.overflow / total, self.flushed / total, self.subnormal / total

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data for JSON."""
        return {
            "overflow": self.overflow,
            "overflow_to": self.overflow_to,
            "flushed": self.flushed,
            "subnormal": self.subnormal,
        }


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """The values that an operation, or several, made. A complex number counts as two values.

    Args:
        runs: how often the operations ran; the iterations of loops are added up.
        values: the number of values of all runs.
        least: the least magnitude of a finite value other than zero; None if there is none.
        largest: the largest magnitude of a finite value other than zero; None if there is none.
        zeros: the number of zeros.
        nans: the number of NaNs.
        infinities: the number of infinities.
        formats: what each format would do to the values, by its name.
        exponents: the number of finite values by their binary exponent, lowest first; values from `2**e` on up to
            `2**(e + 1)` have the exponent `e`, and zeros have none. None without `profile(histogram=True)`.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import profile
    >>> values = (
    ...     profile(lambda x: x / x, formats=[])(jnp.array([0.0, 2.0, 3.0]))
    ...     .rows[0]
    ...     .values
    ... )
    >>> values.runs, values.values, values.nans, values.largest
    (1, 3, 1, 1.0)
    """

    runs: int
    values: int
    least: float | None
    largest: float | None
    zeros: int
    nans: int
    infinities: int
    formats: Mapping[str, FormatCounts]
    exponents: Mapping[int, int] | None = None

    @property
    def severity(self) -> tuple[float, ...]:
        """How much the values suffer; values that suffer more sort later.

        NaNs come first. Then follows the number of formats that some values overflow, because infinity and NaN spoil
        what is computed with them; and at last the shares of the values that overflow, become zero and are subnormal,
        added up over the formats.
        """
        rows = self.formats.values()
        shares = [sum(shares) for shares in zip(*(row.shares for row in rows), strict=True)]
        return float(self.nans > 0), float(sum(row.overflow > 0 for row in rows)), *shares

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data for JSON."""
        return plain_fields(self)


def read_counts(tally: Tally, questions: Questions, elements: int) -> ValueCounts:
    """Read a tally.

    Args:
        tally: the tally, as NumPy arrays; more axes than those of one tally, which `jax.vmap` adds, are added up.
        questions: what was counted.
        elements: the number of values of one run.
    """
    source = questions.source
    low, high = (half.reshape(-1, half.shape[-1]).astype("uint64") for half in np.moveaxis(tally.counts, -2, 0))
    runs, *counts = (int(count) for count in (low + (high << np.uint64(32))).astype(object).sum(axis=0))
    reach, exponents = _read(counts, questions)
    values = runs * elements
    numbers, beyond, nans = (reach[Level(rank)] for rank in (1, last_rank(source) + 1, first_nan_rank(source)))
    zeros, least, most = values - numbers, int(np.min(tally.least)), int(np.max(tally.most))
    outcomes: dict[str, FormatCounts] = {}
    for target in questions.formats:
        at = thresholds(source, target)
        overflow = reach[Level(at.overflow, positive=not target.signed)] - beyond + (0 if target.zero else zeros)
        kept, normal = reach[Level(at.kept)], reach[Level(at.normal)]
        outcomes[target.name] = FormatCounts(
            target.name, values, overflow, overflow_to(target), numbers - kept, kept - normal
        )
    return ValueCounts(
        runs,
        values,
        float(value_of_rank(source, least)) if most else None,
        float(value_of_rank(source, most)) if most else None,
        zeros,
        nans,
        beyond - nans,
        outcomes,
        exponents,
    )


def _read(counts: Sequence[int], questions: Questions) -> tuple[dict[Level, int], dict[int, int] | None]:
    """How many values reach each level, and the histogram of their exponents, if there is one."""
    reach = dict(zip(questions.levels_to_count, counts, strict=False))
    if not questions.histogram:
        return reach, None
    source = questions.source
    between = list(zip(questions.edges, counts[len(reach) :], strict=True))
    exponents: Counter[int] = Counter()
    above = 0
    for edge, count in reversed(between):
        above += count
        if Level(edge) in questions.levels:
            reach[Level(edge)] = above
        if count and 0 < edge <= last_rank(source):
            exponents[exponent_of_rank(source, edge)] += count
    return reach, dict(sorted(exponents.items()))


def sum_counts(counts: Sequence[ValueCounts], runs: int | None = None) -> ValueCounts:
    """The values of several operations, or of the results of one.

    Args:
        counts: the values of each, at least one.
        runs: the number of runs, if it is not their sum.
    """

    def total(name: str, rows: Sequence[ValueCounts | FormatCounts] = counts) -> int:
        return sum(getattr(row, name) for row in rows)

    formats: dict[str, FormatCounts] = {}
    for name, first in counts[0].formats.items():
        rows = [each.formats[name] for each in counts]
        sums = {field: total(field, rows) for field in ("values", "overflow", "flushed", "subnormal")}
        formats[name] = replace(first, **sums)
    known = [each.exponents for each in counts if each.exponents is not None]
    exponents = sum(map(Counter, known), Counter[int]())
    return ValueCounts(
        total("runs") if runs is None else runs,
        total("values"),
        min((each.least for each in counts if each.least is not None), default=None),
        max((each.largest for each in counts if each.largest is not None), default=None),
        total("zeros"),
        total("nans"),
        total("infinities"),
        formats,
        dict(sorted(exponents.items())) if len(known) == len(counts) else None,
    )
