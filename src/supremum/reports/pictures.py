"""The picture of a report: for each row a line of source, its text and a drawing, as a self-contained SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from supremum.render import Drawing, picture, shortened, stacked, text_width

MOST_DRAWN = 1000
"""The most rows of a picture."""
_LONGEST = 80
"""The most characters of an expression in a picture."""
_GAP = 18


def rows_picture(
    title: str,
    sentences: Iterable[str],
    rows: Sequence[tuple[str, str, Drawing]],
    key: Sequence[tuple[str, str]],
    *,
    style: str,
) -> str:
    """Draw rows below each other, as a self-contained SVG, light and dark.

    Args:
        title: the title.
        sentences: sentences under the title.
        rows: for each row its line, the source text, and the drawing.
        key: pairs of class and meaning, for the legend.
        style: the CSS rules of the classes.

    >>> drawn = rows_picture(
    ...     "loss", [], [("model.py:3", "x + 1", Drawing(10, 10, ""))], [], style=""
    ... )
    >>> drawn.startswith("<svg"), "x + 1" in drawn
    (True, True)
    """
    blocks = [stacked([_head(where, shortened(code, _LONGEST)), drawing], 4) for where, code, drawing in rows]
    return picture(title, stacked(blocks, _GAP), sentences, key, style=style)


def _head(where: str, code: str) -> Drawing:
    width = max(text_width(where, 13, monospaced=False), text_width(code))
    body = f'<text class="head" y="13">{escape(where)}</text><text class="mono" y="30">{escape(code)}</text>'
    return Drawing(width, 36, body)


def theme_rules(colours: Mapping[str, tuple[str, str]]) -> str:
    """CSS rules that fill the classes of a picture in the light and the dark theme.

    Args:
        colours: the light and dark colour of each class.

    >>> theme_rules({"bar": ("#000", "#fff")}).splitlines()[0]
    '.supremum .bar { fill: #000; }'
    """
    light, dark = (
        "\n".join(f".supremum .{name} {{ fill: {pair[theme]}; }}" for name, pair in colours.items()) for theme in (0, 1)
    )
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
