"""The common parts of our SVG pictures: the frame, the light and dark themes, wrapped text, and the legend."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from supremum.errors import printable

PALETTE: dict[str, tuple[str, str]] = {
    "bool": ("#f5f0dc", "#45401f"),
    "integer": ("#dbeafe", "#1e3a5f"),
    "float": ("#dcfce7", "#14532d"),
    "complex": ("#f3e8ff", "#4c1d73"),
    "changed": ("#ffcf8f", "#7a4100"),
    "refused": ("#dfe3e8", "#3a4149"),
}
"""The light and dark background of each class. Text keeps the page's colour, with a contrast above 7 to 1.

>>> light, dark = PALETTE["integer"]
>>> f"integers are {light} on a light page and {dark} on a dark one"
'integers are #dbeafe on a light page and #1e3a5f on a dark one'
"""
MARGIN = 20.0
"""The margin of a picture. All lengths here are in px."""
# Upper bounds for the width of a character, in em, in the font families below; for the proportional ones, of the mean
# width in plain English.
_MONOSPACED, _PROPORTIONAL = 0.62, 0.58
_TITLE, _LINE = 17.0, 13.0
_MIN_WIDTH = 600.0
LIGHT = {"page": "#ffffff", "text": "#111111", "line": "#8a8a8a", "lit": "#b45309"}
"""The colours of the light theme; those of the kinds of types are in `PALETTE`."""
_FILL = ".supremum .{style} .box {{ fill: {colour}; }}"
_DARK = {"page": "#16181d", "text": "#eeeeee", "line": "#808080", "lit": "#fbbf24"}

_FRAME = """<svg xmlns="http://www.w3.org/2000/svg" class="supremum" role="img" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}">
<title>{title}</title>
<desc>{description}</desc>
<style>
.supremum {{ {light_colours} color-scheme: light dark; }}
.supremum text {{ fill: var(--text); font: {line}px system-ui, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif; }}
.supremum .mono {{ font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
.supremum .title {{ font-size: {title_size}px; font-weight: bold; }}
.supremum .head, .supremum .bold text, .supremum .marked text {{ font-weight: bold; }}
.supremum .sign {{ font-size: 11px; }}
.supremum .end {{ text-anchor: end; }}
.supremum .page {{ fill: var(--page); }}
.supremum .box {{ stroke: var(--line); }}
.supremum .marked .box {{ stroke: var(--text); stroke-width: 2.5; }}
{light}
{style}@media (prefers-color-scheme: dark) {{
.supremum {{ {dark_colours} }}
{dark}
}}
</style>
<rect class="page" width="100%" height="100%"/>
{body}
</svg>
"""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A part of a picture.

    Args:
        width, height: its size in px.
        body: its elements, relative to (0, 0).
    """

    width: float
    height: float
    body: str

    def at(self, x: float, y: float) -> str:
        """The elements, moved."""
        return f'<g transform="translate({number(x)} {number(y)})">\n{self.body}\n</g>'


def number(value: float) -> str:
    """Format a length with at most one decimal.

    >>> number(12.0), number(3.14)
    ('12', '3.1')
    """
    return f"{value:.1f}".removesuffix(".0")


def text_width(text: str, size: float = 12, *, monospaced: bool = True) -> float:
    """An upper bound for the width of a text in any of the fonts.

    Args:
        text: one line.
        size: the font size, in px.
        monospaced: whether the text is in the monospaced font of names or the proportional font of sentences.
    """
    return len(text) * size * (_MONOSPACED if monospaced else _PROPORTIONAL)


def lines(text: Iterable[str], width: float) -> Drawing:
    """Sentences below each other, wrapped to a width.

    Args:
        text: the sentences.
        width: the width.
    """
    fitting = max(20, int(width / text_width("x", _LINE, monospaced=False)))
    broken = [line for sentence in text for line in textwrap.wrap(sentence, fitting)]
    height = _LINE * 1.5
    body = (f'<text y="{number(height * place + _LINE)}">{escape(line)}</text>' for place, line in enumerate(broken))
    return Drawing(width, height * len(broken), "\n".join(body))


def name_lines(full_names: Iterable[tuple[str, str]], width: float) -> Drawing:
    """The full names of short names as one wrapped sentence; no line is broken inside a pair.

    Args:
        full_names: pairs of a short name and its full name.
        width: the width.
    """
    pairs = (f"{short} {name}".replace(" ", "\N{NO-BREAK SPACE}") for short, name in full_names)
    return lines([", ".join(pairs)], width)


def stacked(blocks: Iterable[Drawing], gap: float = 8, *, margin: float = 0) -> Drawing:
    """Blocks below each other, without the empty ones.

    Args:
        blocks: the blocks, from the top.
        gap: the space between them.
        margin: the space around all of them.
    """
    width, y, drawn = 0.0, margin, list[str]()
    for block in (each for each in blocks if each.height):
        y += gap if drawn else 0
        drawn.append(block.at(margin, y))
        width, y = max(width, block.width), y + block.height
    return Drawing(width + 2 * margin, y + margin, "\n".join(drawn))


def beside(blocks: Iterable[Drawing], gap: float) -> Drawing:
    """Blocks side by side.

    Args:
        blocks: the blocks, from the left.
        gap: the space between them.
    """
    x, height, drawn = 0.0, 0.0, list[str]()
    for block in blocks:
        x += gap if drawn else 0
        drawn.append(block.at(x, 0))
        x, height = x + block.width, max(height, block.height)
    return Drawing(x, height, "\n".join(drawn))


def legend(entries: Sequence[tuple[str, str]], width: float) -> Drawing:
    """The meaning of the colours, in as many rows as needed.

    Args:
        entries: pairs of class and meaning.
        width: the width.
    """
    x, y, drawn = 0.0, 0.0, list[str]()
    for style, meaning in entries:
        entry_width = text_width(meaning, _LINE, monospaced=False) + 22
        if x and x + entry_width > width:
            x, y = 0.0, y + 24
        drawn.append(
            f'<g class="{escape(style)}"><rect class="box" x="{number(x + 1)}" y="{number(y + 1)}" width="14" '
            f'height="14" rx="3"/></g><text x="{number(x + 21)}" y="{number(y + 12.5)}">{escape(meaning)}</text>'
        )
        x += entry_width + 16
    return Drawing(width, y + 20 if drawn else 0.0, "\n".join(drawn))


def picture(
    title: str,
    content: Drawing,
    caption: Iterable[str] = (),
    entries: Sequence[tuple[str, str]] = (),
    *,
    description: str = "",
    style: str = "",
    least: float = _MIN_WIDTH,
) -> str:
    """A self-contained SVG, light and dark: a title, sentences, a legend, and the content.

    Args:
        title: the title, which is also the accessible name.
        content: the content.
        caption: sentences under the title.
        entries: pairs of class and meaning, for the legend.
        description: the text for screen readers; by default the caption.
        style: additional CSS rules.
        least: the smallest width inside the margins.
    """
    sentences = tuple(caption)
    inner = max(content.width, text_width(title, _TITLE, monospaced=False), least)
    above = [Drawing(inner, _TITLE * 1.7, f'<text class="title" y="{number(_TITLE)}">{escape(title)}</text>')]
    above += [lines(sentences, inner), legend(entries, inner)]
    drawn = stacked([*above, content], margin=MARGIN)
    drawing = _FRAME.format(
        width=number(inner + 2 * MARGIN),
        height=number(drawn.height),
        title=escape(title),
        description=escape(description or " ".join(sentences) or title),
        line=number(_LINE),
        title_size=number(_TITLE),
        light_colours=_variables(LIGHT),
        dark_colours=_variables(_DARK),
        light=palette_rules(_FILL, 0),
        dark=palette_rules(_FILL, 1),
        style=f"{style}\n" if style else "",
        body=drawn.body,
    )
    return printable(drawing)


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def palette_rules(rule: str, theme: int) -> str:
    """A CSS rule for each class of `PALETTE`.

    Args:
        rule: the rule, with `{style}` and `{colour}` for the class and its colour.
        theme: 0 for light, 1 for dark.
    """
    return "\n".join(rule.format(style=style, colour=colours[theme]) for style, colours in PALETTE.items())
