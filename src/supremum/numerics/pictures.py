"""The histogram of exponents of an operation, over the ranges of formats."""

from __future__ import annotations

from collections.abc import Sequence

from supremum.formats import Format
from supremum.numerics.value_counts import ValueCounts
from supremum.numerics.wording import every
from supremum.reports import Exponents, Span


def exponents(values: ValueCounts, formats: Sequence[Format]) -> Exponents:
    """The histogram of some values, with what each format does to them.

    Args:
        values: the values; a histogram that was not counted is empty.
        formats: the formats.
    """
    spans = [
        Span(
            each.short_name,
            each.min_exponent - (each.mantissa if each.zero else 0),
            each.min_exponent,
            each.max_exponent,
            every(values.formats[each.name]),
        )
        for each in formats
    ]
    return Exponents(values.exponents or {}, tuple(spans))
