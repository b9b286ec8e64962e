"""The Hasse diagram of an order: its content, its layout, and the diagram as SVG and in the DOT language."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from supremum.render.graph_layout import BETWEEN, HEIGHT, Box, Curve, laid_out
from supremum.render.svg import LIGHT, PALETTE, Drawing, lines, name_lines, number, picture, stacked, text_width

_PADDING = 9.0
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


def hasse_to_svg(diagram: Diagram) -> str:
    """Draw the diagram as a self-contained SVG, light and dark, with the lowest elements at the bottom.

    Args:
        diagram: the diagram.

    >>> nodes = (Node("int8", "integer"), Node("int16", "integer"))
    >>> drawn = hasse_to_svg(Diagram("two", nodes, (("int8", "int16"),)))
    >>> drawn.startswith("<svg"), drawn.count("<path")
    (True, 1)
    """
    joined = {name for edge in diagram.edges for name in edge}
    above: dict[str, list[str]] = {node.text: [] for node in diagram.nodes if node.text in joined}
    for lower, upper in diagram.edges:
        above[lower].append(upper)
    layout = laid_out(above, {node.text: _width(node) for node in diagram.nodes if node.text in above})
    paths = {edge: f'<path class="edge" d="{_path(curves)}"/>' for edge, curves in sorted(layout.curves.items())}
    # Highlighted edges lie above the others, and labels above all edges.
    drawn = [path for edge, path in paths.items() if edge not in diagram.lit]
    drawn += [f'<g class="lit">{path}</g>' for edge, path in paths.items() if edge in diagram.lit]
    drawn += [_label(node, layout.boxes[node.text]) for node in diagram.nodes if node.text in layout.boxes]
    blocks = [Drawing(layout.width, layout.height, "\n".join(drawn))]
    width = max(layout.width, _MIN_WIDTH)
    alone = [node for node in diagram.nodes if node.text not in layout.boxes]
    if alone:
        blocks += [lines([diagram.apart], width), _grid(alone, width)]
    blocks.append(name_lines(diagram.full_names, width))
    below = (f"{node} is below {', '.join(uppers)}." for node, uppers in above.items() if uppers)
    sentences = (*diagram.caption, *below)
    description = " ".join(sentences)
    content = stacked(blocks, 16)
    return picture(
        diagram.title, content, diagram.caption, diagram.legend, description=description, style=_STYLE, least=_MIN_WIDTH
    )


def _grid(nodes: Sequence[Node], most: float) -> Drawing:
    """Labels side by side, in as many rows as needed."""
    x, y, drawn = 0.0, 0.0, list[str]()
    for node in nodes:
        if x and x + _width(node) > most:
            x, y = 0.0, y + HEIGHT + BETWEEN
        drawn.append(_label(node, Box(x, y, _width(node))))
        x += _width(node) + BETWEEN
    return Drawing(most, y + HEIGHT, "\n".join(drawn))


def _width(node: Node) -> float:
    return math.ceil(text_width(node.label or node.text)) + 2 * _PADDING


def _label(node: Node, box: Box) -> str:
    style = f"{node.style}{' dashed' if node.dashed else ''}{' lit' if node.lit else ''}"
    x, y = number(box.x), number(box.y)
    return (
        f'<g class="{style}"><rect class="box" x="{x}" y="{y}" width="{number(box.width)}" height="{number(HEIGHT)}" '
        f'rx="6"/><text class="mono mid" x="{number(box.x + box.width / 2)}" y="{number(box.y + 16)}">'
        f"{escape(node.label or node.text)}</text></g>"
    )


def _path(curves: Sequence[Curve]) -> str:
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
    written = [
        f"digraph {_quoted(diagram.title)} {{",
        f"  graph [rankdir=BT, label={_quoted(label)}];",
        '  node [shape=box, fontname="monospace", fontcolor="#111111"];',
        '  edge [dir=none, color="#8a8a8a"];',
        *map(_node, diagram.nodes),
    ]
    for lower, upper in diagram.edges:
        lit = f' [color="{LIGHT["lit"]}", penwidth=3]' if (lower, upper) in diagram.lit else ""
        written.append(f"  {_quoted(lower)} -> {_quoted(upper)}{lit};")
    return "\n".join([*written, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _node(node: Node) -> str:
    style = "filled,rounded,dashed" if node.dashed else "filled,rounded"
    lit = f', color="{LIGHT["lit"]}", penwidth=3' if node.lit else ""
    return f'  {_quoted(node.text)} [style="{style}", fillcolor="{PALETTE[node.style][0]}"{lit}];'
