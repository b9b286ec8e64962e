"""Signed numbers of source lines as bars, on one logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from supremum.render import Drawing, number
from supremum.reports.pictures import rows_picture, theme_rules

_COLOURS = {"adds": ("#1d6fb8", "#6cb2ee"), "takes": ("#b45309", "#f5a545"), "most": ("#cfd6de", "#454c56")}
_KEY = (
    ("adds", "raises the result"),
    ("takes", "lowers the result"),
    ("most", "the most it could be, if no errors of single values cancelled; the scale is logarithmic"),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A line of source and its number.

    Args:
        where: the line.
        code: its text.
        estimate: the number, with its sign.
        bound: the most that its magnitude could be.

    >>> Bar("model.py:3", "x + 1", -0.5, 0.7).bound
    0.7
    """

    where: str
    code: str
    estimate: float
    bound: float


def bars_picture(title: str, sentences: Iterable[str], bars: Sequence[Bar], width: float = 640.0) -> str:
    """Draw bars below each other, on one logarithmic scale, as a self-contained SVG, light and dark.

    Args:
        title: the title.
        sentences: sentences under the title.
        bars: the bars.
        width: the width of the longest bar.

    >>> drawn = bars_picture("Error", [], [Bar("model.py:3", "x + 1", -0.5, 0.7)])
    >>> drawn.startswith("<svg"), "x + 1" in drawn
    (True, True)
    """
    sizes = [size for bar in bars for size in (abs(bar.estimate), bar.bound) if size > 0 and math.isfinite(size)]
    top = math.log10(max(sizes, default=1.0))
    bottom = max(math.log10(min(sizes, default=1.0)), top - 8) - 0.3

    def length(value: float) -> str:
        return number(width * max(0.0, (math.log10(abs(value)) - bottom) / (top - bottom)) if value else 0.0)

    def drawing(bar: Bar) -> Drawing:
        style = "adds" if bar.estimate > 0 else "takes"
        body = (
            f'<rect class="most" width="{length(bar.bound)}" height="14" rx="2"/>'
            f'<rect class="{style}" y="3" width="{length(bar.estimate)}" height="8" rx="2"/>'
            f'<text x="{number(width + 10)}" y="12">{bar.estimate:+.2g}</text>'
        )
        return Drawing(width + 90, 16, body)

    rows = [(bar.where, bar.code, drawing(bar)) for bar in bars]
    return rows_picture(title, sentences, rows, _KEY, style=theme_rules(_COLOURS))
