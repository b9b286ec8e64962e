"""Signed numbers of source lines as bars, on one logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from supremum.render.svg import Block, number, picture, stacked, text_width

_COLOURS = {"adds": ("#1d6fb8", "#6cb2ee"), "takes": ("#b45309", "#f5a545"), "most": ("#cfd6de", "#454c56")}
_LONGEST = 80


@dataclass(frozen=True, slots=True)
class Bar:
    """A line of source and its number.

    Args:
        where: the line.
        code: its text.
        estimate: the number, with its sign.
        bound: the most that its magnitude could be.
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

    def length(value: float) -> float:
        return width * max(0.0, (math.log10(abs(value)) - bottom) / (top - bottom)) if value else 0.0

    blocks: list[Block] = []
    for bar in bars:
        code = bar.code if len(bar.code) <= _LONGEST else f"{bar.code[: _LONGEST - 3]}..."
        style = "adds" if bar.estimate > 0 else "takes"
        body = (
            f'<text class="head" y="13">{escape(bar.where)}</text><text class="mono" y="30">{escape(code)}</text>'
            f'<rect class="most" y="38" width="{number(length(bar.bound))}" height="14" rx="2"/>'
            f'<rect class="{style}" y="41" width="{number(length(bar.estimate))}" height="8" rx="2"/>'
            f'<text x="{number(width + 10)}" y="50">{bar.estimate:+.2g}</text>'
        )
        blocks.append(Block(max(width + 90, text_width(code)), 54, body))
    key = (
        ("adds", "raises the result"),
        ("takes", "lowers the result"),
        ("most", "the most it could be, if no errors of single values cancelled; the scale is logarithmic"),
    )
    return picture(title, stacked(blocks, 16), sentences, key, style=_style())


def _style() -> str:
    def rules(theme: int) -> str:
        return "\n".join(
            f".supremum .{name}, .supremum .{name} .box {{ fill: {colours[theme]}; }}"
            for name, colours in _COLOURS.items()
        )

    return f"{rules(0)}\n@media (prefers-color-scheme: dark) {{\n{rules(1)}\n}}"
