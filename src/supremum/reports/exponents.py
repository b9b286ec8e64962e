"""Histograms of binary exponents over the ranges that number formats hold, as SVG and HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from supremum.render import Drawing, number, text_width
from supremum.reports.pictures import rows_picture, theme_rules

_WIDE = 80
"""The most exponents of a range that an axis shows completely where no value needs it."""
_TICKS = 6
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_HEIGHT = 40.0
_STRIP, _STRIP_GAP = 9.0, 6.0
_TEXT_COLUMN = 76.0
_TICK_TEXT = 14.0
COLOURS: dict[str, tuple[str, str]] = {
    "bar": ("#0b57d0", "#8ab4ff"),
    "track": ("#e4e7eb", "#2c323b"),
    "normal": ("#8fd19e", "#2f7d45"),
    "subnormal": ("#f5dd8c", "#7a6312"),
    "overflow": ("#c5221f", "#ff7b70"),
    "lost": ("#b3560b", "#ffa552"),
}
"""The light and dark colour of each part: the bars, ranges, and the values outside of ranges."""


@dataclass(frozen=True, slots=True)
class Span:
    """The range of a format.

    Args:
        name: its name, short.
        low: the exponent of its smallest number.
        normal: the exponent of its smallest normal number; `low` if it has no subnormal ones.
        high: the exponent of its largest number.
        note: what it does to the values, in a few words.

    >>> Span("f16", -24, -14, 15, "3% inf").note
    '3% inf'
    """

    name: str
    low: int
    normal: int
    high: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Exponents:
    """A histogram of binary exponents.

    Args:
        counts: the number of values by their exponent; `2**e` and what is less than `2**(e + 1)` has the exponent `e`.
        spans: the ranges to compare them with.

    >>> describe(Exponents({-1: 4, 3: 1}))
    'exponents from 2⁻¹ to 2³'
    """

    counts: Mapping[int, int]
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class ExponentAxis:
    """The exponents that histograms show, so that several can be compared.

    Args:
        first, last: the lowest and the highest exponent.

    >>> ExponentAxis(-26, 22).length, ExponentAxis(-26, 22).ticks
    (49, (-16, 0, 16))
    """

    first: int
    last: int

    @property
    def length(self) -> int:
        """The number of exponents."""
        return self.last - self.first + 1

    @property
    def ticks(self) -> tuple[int, ...]:
        """The exponents to name."""
        step = next((each for each in (4, 8, 16, 32) if self.length / each <= _TICKS), 64)
        return tuple(range(-(-self.first // step) * step, self.last + 1, step))


def axis_of(histograms: Iterable[Exponents]) -> ExponentAxis:
    """The axis that shows all values, and the ranges as far as they are not very wide.

    >>> axis_of([Exponents({0: 3, 20: 1}, (Span("f16", -24, -14, 15),))])
    ExponentAxis(first=-26, last=22)
    """
    histograms = tuple(histograms)
    shown = [each for histogram in histograms for each, count in histogram.counts.items() if count]
    for span in {span for histogram in histograms for span in histogram.spans}:
        if span.high - span.low < _WIDE:
            shown += [span.low, span.high]
    return ExponentAxis(min(shown, default=-8) - 2, max(shown, default=8) + 2)


def power(exponent: int) -> str:
    """A power of two.

    >>> power(-14)
    '2⁻¹⁴'
    """
    return f"2{str(exponent).translate(_SUPERSCRIPTS)}"


def describe(histogram: Exponents) -> str:
    """What a histogram shows, for screen readers.

    >>> describe(Exponents({0: 3, 20: 1}, (Span("f16", -24, -14, 15, "25% inf"),)))
    'exponents from 2⁰ to 2²⁰; f16 25% inf'
    """
    shown = [each for each, count in histogram.counts.items() if count]
    values = f"exponents from {power(min(shown))} to {power(max(shown))}" if shown else "no values other than zero"
    return "; ".join([values, *(f"{span.name} {span.note}" for span in histogram.spans if span.note)])


def _bars(counts: Mapping[int, int], axis: ExponentAxis, width: float, height: float) -> str:
    """The bars as the data of a path; a bar's height is the logarithm of its count."""
    most = max(counts.values(), default=0)
    wide = width / axis.length
    parts: list[str] = []
    for exponent in sorted(each for each, count in counts.items() if count):
        tall = height * (1 + math.log2(counts[exponent])) / (1 + math.log2(most))
        x = (exponent - axis.first) * wide
        parts.append(f"M{x:.2f} {height:g}v{-tall:.2f}h{wide:.2f}v{tall:.2f}z")
    return "".join(parts)


def _strip(histogram: Exponents, span: Span, axis: ExponentAxis) -> list[tuple[str, int, int]]:
    """The parts of the strip of a format: what it is, its first exponent, and the one after its last."""
    ranges = ("subnormal", span.low, span.normal), ("normal", span.normal, span.high + 1)
    parts = [
        (name, max(start, axis.first), min(end, axis.last + 1))
        for name, start, end in ranges
        if max(start, axis.first) < min(end, axis.last + 1)
    ]
    outside = sorted(each for each, count in histogram.counts.items() if count and not span.low <= each <= span.high)
    for exponent in outside:
        name = "overflow" if exponent > span.high else "lost"
        if parts and parts[-1][0] == name and parts[-1][2] == exponent:
            parts[-1] = (name, parts[-1][1], exponent + 1)
        else:
            parts.append((name, exponent, exponent + 1))
    return parts


def legend_to_html() -> str:
    """The meaning of the colours of `exponents_to_html`, as an HTML list.

    >>> legend_to_html().count("<li>")
    5
    """
    entries = (f'<li><i style="background:var(--{name})"></i>{escape(meaning)}</li>' for name, meaning in KEY)
    return f'<ul class="legend">{"".join(entries)}</ul>'


def exponents_to_html(histogram: Exponents, axis: ExponentAxis) -> str:
    """A histogram as an HTML fragment that is as wide as its place.

    The style is that of `report.css`, which shows only the bars while the row of a page is closed.

    Args:
        histogram: the histogram.
        axis: the exponents to show.

    >>> drawn = exponents_to_html(
    ...     Exponents({0: 3}, (Span("f16", -24, -14, 15),)), ExponentAxis(-8, 8)
    ... )
    >>> drawn.count("<svg"), "f16" in drawn
    (2, True)
    """
    length = axis.length
    frame = f'<svg viewBox="0 0 {length} {{}}" preserveAspectRatio="none" aria-hidden="true">{{}}</svg>'
    lines = "".join(f'<path class="tick" d="M{each - axis.first} 0v{_HEIGHT:g}"/>' for each in axis.ticks)
    bars = f'{lines}<path class="bar" d="{_bars(histogram.counts, axis, length, _HEIGHT)}"/>'
    drawn = [f'<span></span><div class="bars">{frame.format(f"{_HEIGHT:g}", bars)}</div><span></span>']
    for span in histogram.spans:
        parts = "".join(
            f'<rect class="{name}" x="{start - axis.first}" width="{end - start}" height="1"/>'
            for name, start, end in _strip(histogram, span, axis)
        )
        track = f'<rect class="track" width="{length}" height="1"/>{parts}'
        strip = f'<div class="strip">{frame.format(1, track)}</div>'
        drawn.append(f"<b>{escape(span.name)}</b>{strip}<span>{escape(span.note)}</span>")
    ticks = "".join(
        f'<i style="left:{100 * (each - axis.first) / length:.2f}%">{power(each)}</i>' for each in axis.ticks
    )
    drawn.append(f'<span></span><div class="ticks">{ticks}</div><span></span>')
    return f'<div class="exponents" role="img" aria-label="{escape(describe(histogram))}">{"".join(drawn)}</div>'


KEY: tuple[tuple[str, str], ...] = (
    ("bar", "values, by their exponent; heights are logarithms of counts"),
    ("normal", "normal numbers of a format"),
    ("subnormal", "its subnormal numbers"),
    ("overflow", "values beyond its range"),
    ("lost", "values below it, flushed to zero"),
)
"""The meaning of each colour."""


def exponents_to_block(histogram: Exponents, axis: ExponentAxis, width: float) -> Drawing:
    """A histogram as a part of a picture, with the names of formats at the left and their notes at the right.

    Args:
        histogram: the histogram.
        axis: the exponents to show.
        width: the width of the bars.
    """
    wide = width / axis.length
    notes = max((text_width(span.note) for span in histogram.spans), default=0.0)
    y = _HEIGHT
    lines = "".join(
        f'<path class="tick" d="M{number(_TEXT_COLUMN + (each - axis.first) * wide)} 0v{number(_HEIGHT)}"/>'
        for each in axis.ticks
    )
    bars = _bars(histogram.counts, axis, width, _HEIGHT)
    drawn = [lines, f'<path class="bar" transform="translate({number(_TEXT_COLUMN)} 0)" d="{bars}"/>']
    for span in histogram.spans:
        y += _STRIP_GAP
        place = f'y="{number(y)}" height="{number(_STRIP)}"'
        drawn.append(
            f'<text class="mono end" x="{number(_TEXT_COLUMN - 8)}" y="{number(y + 9)}">{escape(span.name)}</text>'
        )
        drawn.append(f'<rect class="track" x="{number(_TEXT_COLUMN)}" width="{number(width)}" {place}/>')
        drawn += [
            f'<rect class="{name}" x="{number(_TEXT_COLUMN + (start - axis.first) * wide)}" '
            f'width="{number((end - start) * wide)}" {place}/>'
            for name, start, end in _strip(histogram, span, axis)
        ]
        drawn.append(
            f'<text class="mono" x="{number(_TEXT_COLUMN + width + 8)}" y="{number(y + 9)}">{escape(span.note)}</text>'
        )
        y += _STRIP
    names = "".join(
        f'<text class="sign" text-anchor="middle" x="{number(_TEXT_COLUMN + (each - axis.first) * wide)}" '
        f'y="{number(y + _TICK_TEXT)}">{power(each)}</text>'
        for each in axis.ticks
    )
    return Drawing(_TEXT_COLUMN + width + 8 + notes, y + _TICK_TEXT + 4, "\n".join([*drawn, names]))


def exponents_picture(
    title: str, caption: Iterable[str], rows: Sequence[tuple[str, str, Exponents]], *, width: float = 420.0
) -> str:
    """Histograms below each other on one axis, as a self-contained SVG, light and dark.

    Args:
        title: the title.
        caption: sentences under the title.
        rows: for each row a line in bold, a line in the font of code, and the histogram.
        width: the width of the bars.

    >>> drawn = exponents_picture(
    ...     "loss", [], [("model.py:3", "jnp.exp(x)", Exponents({0: 3}))]
    ... )
    >>> drawn.startswith("<svg"), "jnp.exp(x)" in drawn
    (True, True)
    """
    axis = axis_of(histogram for _, _, histogram in rows)
    drawn = [(where, code, exponents_to_block(histogram, axis, width)) for where, code, histogram in rows]
    style = theme_rules(COLOURS) + "\n.supremum .tick { stroke: var(--line); stroke-width: .5; }"
    return rows_picture(title, caption, drawn, KEY, style=style)
