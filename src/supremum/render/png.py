"""Our SVG pictures as PNG in their light colours, drawn by matplotlib, which the extra `plot` installs."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path

from supremum.render.svg import LIGHT, PALETTE

_POINTS = 0.75  # of a CSS pixel
_DPI = 192  # two dots per CSS pixel
_SVG = "{http://www.w3.org/2000/svg}"
_FONTS = {True: "DejaVu Sans Mono", False: "DejaVu Sans"}  # part of matplotlib
_SIZES, _SIZE = {"title": 17, "sign": 11, "mono": 12}, 13
_COMMANDS = {"M": [Path.MOVETO], "L": [Path.LINETO], "C": [Path.CURVE4] * 3}


@dataclass(frozen=True, slots=True)
class _Mark:
    """An element, its classes and those of the elements around it, and its offset."""

    element: ET.Element
    classes: frozenset[str]
    x: float
    y: float

    def get(self, name: str) -> float:
        return float(self.element.get(name, 0))


def to_png(svg: str) -> bytes:
    """Convert a picture of `supremum.render.svg.picture` to a PNG with two dots per pixel.

    Args:
        svg: the picture; only the elements of our own pictures are supported.

    >>> from supremum.render import Table, table_to_svg
    >>> to_png(table_to_svg(Table("none", (), ())))[1:4]
    b'PNG'
    """
    root = ET.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    # A figure without pyplot: no global state, no window, whatever the backend.
    figure: Any = Figure(figsize=(width / 96, height / 96))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(height, 0))
    for order, mark in enumerate(_marks(root, frozenset(), 0, 0)):
        _DRAW[mark.element.tag.removeprefix(_SVG)](axes, mark, order)
    file = io.BytesIO()
    figure.savefig(file, dpi=_DPI, format="png", facecolor=LIGHT["page"])
    return file.getvalue()


def _marks(element: ET.Element, classes: frozenset[str], x: float, y: float) -> Iterator[_Mark]:
    classes = classes.union(element.get("class", "").split())
    if moved := re.fullmatch(r"translate\((\S+) (\S+)\)", element.get("transform", "")):
        x, y = x + float(moved[1]), y + float(moved[2])
    if element.tag.removeprefix(_SVG) in _DRAW:
        yield _Mark(element, classes, x, y)
    for child in element:
        yield from _marks(child, classes, x, y)


def _rect(axes: Any, mark: _Mark, order: int) -> None:
    if "page" in mark.classes:
        return  # the figure has this colour
    styles = mark.classes & set(PALETTE)
    edge, width = LIGHT["line"], 1.0
    for name, (colour, thickness) in {"dashed": ("text", 1.0), "marked": ("text", 2.5), "lit": ("lit", 3.0)}.items():
        if name in mark.classes:
            edge, width = LIGHT[colour], thickness
    axes.add_patch(
        FancyBboxPatch(
            (mark.x + mark.get("x"), mark.y + mark.get("y")),
            mark.get("width"),
            mark.get("height"),
            boxstyle=f"round,pad=0,rounding_size={mark.get('rx')}" if mark.get("rx") else "square,pad=0",
            facecolor=PALETTE[min(styles)][0] if styles else "none",
            edgecolor=edge,
            linewidth=width * _POINTS,
            linestyle=(0, (4 / width, 3 / width)) if "dashed" in mark.classes else "solid",
            zorder=order,
        )
    )


def _text(axes: Any, mark: _Mark, order: int) -> None:
    monospaced = "mono" in mark.classes
    size = next((size for name, size in _SIZES.items() if name in mark.classes), _SIZE)
    sides = (side for name, side in {"mid": "center", "end": "right"}.items() if name in mark.classes)
    axes.text(
        mark.x + mark.get("x"),
        mark.y + mark.get("y"),
        mark.element.text,
        family=_FONTS[monospaced],
        fontsize=size * _POINTS,
        fontweight="bold" if mark.classes & {"title", "head", "marked"} else "normal",
        color=LIGHT["text"],
        ha=next(sides, "left"),
        va="baseline",
        zorder=order,
        parse_math=False,
    )


def _path(axes: Any, mark: _Mark, order: int) -> None:
    codes: list[Any] = []
    points: list[tuple[float, float]] = []
    for command, numbers in re.findall(r"([MLC])([^MLC]+)", mark.element.attrib["d"]):
        values = [float(each) for each in numbers.split()]
        codes += _COMMANDS[command]
        points += [(mark.x + x, mark.y + y) for x, y in zip(values[::2], values[1::2], strict=True)]
    lit = "lit" in mark.classes
    axes.add_patch(
        PathPatch(
            Path(points, codes),
            facecolor="none",
            edgecolor=LIGHT["lit" if lit else "line"],
            linewidth=(3.5 if lit else 1.3) * _POINTS,
            zorder=order,
        )
    )


_DRAW = {"rect": _rect, "text": _text, "path": _path}
