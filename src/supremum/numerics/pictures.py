"""The histograms of exponents of operations, over the ranges of formats."""

from __future__ import annotations

from collections.abc import Sequence

from supremum.formats import Format
from supremum.numerics.value_counts import ValueCounts
from supremum.numerics.wording import every
from supremum.render import Exponents, Span, exponents_picture

_LONGEST = 80


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


def profile_picture(
    title: str, rows: Sequence[tuple[str, str, ValueCounts]], formats: Sequence[Format], rest: int
) -> str:
    """The histograms of operations below each other, as a self-contained SVG.

    Args:
        title: the title.
        rows: the place, the expression and the values of each operation.
        formats: the formats.
        rest: how many operations are not shown.
    """
    drawn = [
        (where, code if len(code) <= _LONGEST else f"{code[: _LONGEST - 3]}...", exponents(values, formats))
        for where, code, values in rows
    ]
    caption = [f"{rest} more operations are not shown."] if rest else []
    return exponents_picture(title, caption, drawn)
