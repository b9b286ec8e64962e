"""The Hasse diagram of an order: its content, its layout, and the diagram as SVG and in the DOT language."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from supremum.render.graph_layout import Layers, Place, in_layers
from supremum.render.svg import LIGHT, PALETTE, Block, name_lines, number, picture, stacked, text_width

HEIGHT = 24.0
"""The height of a box, in px."""
_PADDING, _BETWEEN, _GAP = 9.0, 9.0, 30.0
_ROUNDS = 24
_MIN_WIDTH = 330.0
"""The smallest width of a picture: with its margins it fits on a phone."""
_STYLE = """.supremum .edge { fill: none; stroke: var(--line); stroke-width: 1.3; }
.supremum .lit .edge { stroke: var(--lit); stroke-width: 3.5; }
.supremum .dashed .box { stroke: var(--text); stroke-dasharray: 4 3; }
.supremum .lit .box { stroke: var(--lit); stroke-width: 3; }
.supremum .plain .box { fill: none; }
.supremum .mid { text-anchor: middle; }"""


@dataclass(frozen=True, slots=True)
class Node:
    """One element of the order.

    Args:
        text: its unique name.
        style: the class that sets its colour.
        dashed: whether its outline is dashed.
        lit: whether it is highlighted.
        label: the text to draw, if it is not the name.

    >>> weak = Node("float*", "float", dashed=True)
    >>> print(hasse_to_dot(Diagram("one", (weak,), ())).splitlines()[4])
      "float*" [style="filled,rounded,dashed", fillcolor="#dcfce7"];
    """

    text: str
    style: str
    dashed: bool = False
    lit: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Diagram:
    """An order to be drawn.

    Args:
        title: the title.
        nodes: its elements.
        edges: pairs of an element and one just above it.
        lit: the highlighted edges.
        caption: sentences under the title.
        legend: pairs of class and meaning, in the order to show them.
        apart: the heading above the elements without edges.
        full_names: pairs of a label and the full name.

    >>> nodes = (Node("int8", "integer"), Node("int16", "integer"))
    >>> drawn = hasse_to_svg(
    ...     Diagram(
    ...         "two", nodes, (("int8", "int16"),), caption=("int8 promotes to int16.",)
    ...     )
    ... )
    >>> "int8 promotes to int16." in drawn
    True
    """

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    lit: frozenset[tuple[str, str]] = frozenset()
    caption: tuple[str, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    apart: str = ""
    full_names: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Box:
    """The box of a label: left and top edge, and width, in px; its height is `HEIGHT`."""

    x: float
    y: float
    width: float


Curve = tuple[tuple[float, float], tuple[float, float]]
"""The two ends of a curve that is vertical at both; the first end is the lower one."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions in a diagram, from the lowest elements at the bottom to the highest at the top.

    Args:
        width, height: in px.
        boxes: the boxes of the labels, by name.
        curves: the edges, each as curves with straight vertical lines between them.
        apart: the top of the area for elements without edges, where `Diagram.apart` is drawn; None if there are none.
        crossings: the number of edge crossings.
    """

    width: float
    height: float
    boxes: dict[str, Box]
    curves: dict[tuple[str, str], tuple[Curve, ...]]
    apart: float | None
    crossings: int


def laid_out(diagram: Diagram) -> Layout:
    """Lay out a diagram. Labels do not overlap, and edges do not pass through other labels.

    Args:
        diagram: the diagram.

    >>> nodes = tuple(Node(name, "integer") for name in ("int8", "uint8", "int16"))
    >>> layout = laid_out(Diagram("d", nodes, (("int8", "int16"), ("uint8", "int16"))))
    >>> layout.boxes["int8"].y > layout.boxes["int16"].y, layout.crossings
    (True, 0)
    """
    joined = {name for edge in diagram.edges for name in edge}
    above: dict[str, list[str]] = {node.text: [] for node in diagram.nodes if node.text in joined}
    for lower, upper in diagram.edges:
        above[lower].append(upper)
    layers = in_layers(above)
    widths = {node.text: math.ceil(text_width(node.label or node.text)) + 2 * _PADDING for node in diagram.nodes}
    centres = _centres(layers, widths)
    tops = _tops(layers, centres)
    boxes = {
        place: Box(centres[place] - widths[place] / 2, top, widths[place])
        for top, layer in zip(tops, layers.order, strict=True)
        for place in layer
        if isinstance(place, str)
    }
    curves = {edge: _curves(route, layers, centres, tops) for edge, route in layers.routes.items()}
    width = max((centre + _width(place, widths) / 2 for place, centre in centres.items()), default=0.0)
    height = tops[0] + HEIGHT if tops else 0.0
    apart = None
    alone = {node.text: widths[node.text] for node in diagram.nodes if node.text not in joined}
    if alone:
        apart = height + (20 if boxes else 0)
        grid = _grid(alone, apart + 26, max(width, _MIN_WIDTH))
        boxes |= grid
        width = max(width, *(box.x + box.width for box in grid.values()))
        height = max(box.y for box in grid.values()) + HEIGHT
    return Layout(width, height, boxes, curves, apart, layers.crossings)


def _grid(widths: dict[str, float], top: float, most: float) -> dict[str, Box]:
    boxes, x, y = dict[str, Box](), 0.0, top
    for name, width in widths.items():
        if x and x + width > most:
            x, y = 0.0, y + HEIGHT + _BETWEEN
        boxes[name] = Box(x, y, width)
        x += width + _BETWEEN
    return boxes


def _tops(layers: Layers, centres: dict[Place, float]) -> list[float]:
    """The top edge of every layer, from the lowest; a flat link makes the gap between two layers higher."""
    flattest = [0.0] * len(layers.order)
    level = {place: height for height, layer in enumerate(layers.order) for place in layer}
    for a, b in layers.links:
        flattest[level[a]] = max(flattest[level[a]], abs(centres[a] - centres[b]))
    tops, y = list[float](), 0.0
    for flat in reversed(flattest):
        y += min(40, flat / 8) if tops else 0.0
        tops.append(y)
        y += HEIGHT + _GAP
    return tops[::-1]


def _curves(
    route: Sequence[Place], layers: Layers, centres: dict[Place, float], tops: Sequence[float]
) -> tuple[Curve, ...]:
    start = next(height for height, layer in enumerate(layers.order) if route[0] in layer)
    return tuple(
        ((centres[a], tops[height]), (centres[b], tops[height + 1] + HEIGHT))
        for height, (a, b) in enumerate(itertools.pairwise(route), start)
    )


def _centres(layers: Layers, widths: dict[str, float]) -> dict[Place, float]:
    """The horizontal centre of every place, with links as vertical as the order in the layers allows."""
    centres: dict[Place, float] = {}
    distances: dict[tuple[Place, Place], float] = {}
    for layer in layers.order:
        x = 0.0
        for place, after in zip(layer, (*layer[1:], None), strict=True):
            centres[place] = x
            if after is not None:
                distances[place, after] = _BETWEEN + (_width(place, widths) + _width(after, widths)) / 2
                x += distances[place, after]
    lowers: dict[Place, list[tuple[Place, float]]] = {place: [] for place in centres}
    uppers: dict[Place, list[tuple[Place, float]]] = {place: [] for place in centres}
    for a, b in layers.links:
        # Straight long edges matter more than straight short ones.
        weight = (1.0, 3.0, 8.0)[(not isinstance(a, str)) + (not isinstance(b, str))]
        lowers[b].append((a, weight))
        uppers[a].append((b, weight))
    for turn in range(_ROUNDS):
        up = turn % 2 == 0
        for layer in layers.order if up else layers.order[::-1]:
            # The last rounds use both sides, to centre places between their neighbours.
            sides = [lowers, uppers] if turn >= _ROUNDS - 4 else [lowers if up else uppers]
            _settle(
                layer, centres, distances, {place: [near for side in sides for near in side[place]] for place in layer}
            )
    left = min((centre - _width(place, widths) / 2 for place, centre in centres.items()), default=0.0)
    return {place: round(centre - left, 1) for place, centre in centres.items()}


def _width(place: Place, widths: dict[str, float]) -> float:
    return widths[place] if isinstance(place, str) else 0.0


def _settle(
    layer: Sequence[Place],
    centres: dict[Place, float],
    distances: dict[tuple[Place, Place], float],
    near: dict[Place, list[tuple[Place, float]]],
) -> None:
    """Move the places of a layer as near to the means of their neighbours as their order and distances allow.

    With the distances subtracted, this is isotonic regression, solved by pooling adjacent violators.
    """
    shift, pools = 0.0, list[tuple[float, float, int]]()
    shifts: list[float] = []
    for index, place in enumerate(layer):
        shift += distances[layer[index - 1], place] if index else 0.0
        shifts.append(shift)
        weight = sum(each for _, each in near[place])
        wanted = sum(centres[other] * each for other, each in near[place]) / weight if weight else centres[place]
        pools.append((wanted - shift, weight or 0.1, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, of_a, count_a), (b, of_b, count_b) = pools[-2:]
            pools[-2:] = [((a * of_a + b * of_b) / (of_a + of_b), of_a + of_b, count_a + count_b)]
    means = [mean for mean, _, count in pools for _ in range(count)]
    centres |= {place: mean + shift for place, mean, shift in zip(layer, means, shifts, strict=True)}


def hasse_to_svg(diagram: Diagram) -> str:
    """Draw the diagram as a self-contained SVG, light and dark, with the lowest elements at the bottom.

    Args:
        diagram: the diagram.

    >>> nodes = (Node("int8", "integer"), Node("int16", "integer"))
    >>> drawn = hasse_to_svg(Diagram("two", nodes, (("int8", "int16"),)))
    >>> drawn.startswith("<svg"), drawn.count("<path")
    (True, 1)
    """
    layout = laid_out(diagram)
    paths = {edge: f'<path class="edge" d="{_path(curves)}"/>' for edge, curves in sorted(layout.curves.items())}
    # Highlighted edges lie above the others, and labels above all edges.
    drawn = [path for edge, path in paths.items() if edge not in diagram.lit]
    drawn += [f'<g class="lit">{path}</g>' for edge, path in paths.items() if edge in diagram.lit]
    drawn += [_label(node, layout) for node in diagram.nodes]
    if layout.apart is not None and diagram.apart:
        drawn.append(f'<text y="{number(layout.apart + 13)}">{escape(diagram.apart)}</text>')
    above: dict[str, list[str]] = {}
    for lower, upper in diagram.edges:
        above.setdefault(lower, []).append(upper)
    sentences = (*diagram.caption, *(f"{node} is below {', '.join(uppers)}." for node, uppers in above.items()))
    width = max(layout.width, _MIN_WIDTH)
    block = Block(layout.width, layout.height, "\n".join(drawn))
    content = stacked([block, name_lines(diagram.full_names, width)], 16)
    told = " ".join(sentences)
    return picture(
        diagram.title, content, diagram.caption, diagram.legend, description=told, style=_STYLE, least=_MIN_WIDTH
    )


def _label(node: Node, layout: Layout) -> str:
    box = layout.boxes[node.text]
    style = f"{node.style}{' dashed' if node.dashed else ''}{' lit' if node.lit else ''}"
    x, y = number(box.x), number(box.y)
    return (
        f'<g class="{style}"><rect class="box" x="{x}" y="{y}" width="{number(box.width)}" height="{number(HEIGHT)}" '
        f'rx="6"/><text class="mono mid" x="{number(box.x + box.width / 2)}" y="{number(box.y + 16)}">'
        f"{escape(node.label or node.text)}</text></g>"
    )


def _path(curves: tuple[Curve, ...]) -> str:
    parts: list[str] = []
    for (x, y), (end, there) in curves:
        middle = number((y + there) / 2)
        parts.append(f"{'L' if parts else 'M'}{number(x)} {number(y)}")
        parts.append(f"C{number(x)} {middle} {number(end)} {middle} {number(end)} {number(there)}")
    return " ".join(parts)


def hasse_to_dot(diagram: Diagram) -> str:
    """Write the diagram as a graph in the DOT language of Graphviz, with the lowest elements at the bottom.

    Source: https://graphviz.org/doc/info/lang.html.

    Args:
        diagram: the diagram.

    >>> print(hasse_to_dot(Diagram("one", (Node("int*", "integer", dashed=True),), ())))
    digraph "one" {
      graph [rankdir=BT, label="one"];
      node [shape=box, fontname="monospace", fontcolor="#111111"];
      edge [dir=none, color="#8a8a8a"];
      "int*" [style="filled,rounded,dashed", fillcolor="#dbeafe"];
    }
    <BLANKLINE>
    """
    label = "\n".join((diagram.title, *diagram.caption))
    lines = [
        f"digraph {_quoted(diagram.title)} {{",
        f"  graph [rankdir=BT, label={_quoted(label)}];",
        '  node [shape=box, fontname="monospace", fontcolor="#111111"];',
        '  edge [dir=none, color="#8a8a8a"];',
        *map(_node, diagram.nodes),
    ]
    for lower, upper in diagram.edges:
        lit = f' [color="{LIGHT["lit"]}", penwidth=3]' if (lower, upper) in diagram.lit else ""
        lines.append(f"  {_quoted(lower)} -> {_quoted(upper)}{lit};")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _node(node: Node) -> str:
    style = "filled,rounded,dashed" if node.dashed else "filled,rounded"
    lit = f', color="{LIGHT["lit"]}", penwidth=3' if node.lit else ""
    return f'  {_quoted(node.text)} [style="{style}", fillcolor="{PALETTE[node.style][0]}"{lit}];'
