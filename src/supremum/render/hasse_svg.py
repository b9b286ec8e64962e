"""A Hasse diagram as a self-contained SVG."""

from __future__ import annotations

from html import escape

from supremum.render.hasse import HEIGHT, Curve, Diagram, Layout, Node, laid_out
from supremum.render.svg import Block, number, picture

_STYLE = """.supremum .edge { fill: none; stroke: var(--line); stroke-width: 1.3; }
.supremum .lit .edge { stroke: var(--lit); stroke-width: 3.5; }
.supremum .dashed .box { stroke: var(--text); stroke-dasharray: 4 3; }
.supremum .lit .box { stroke: var(--lit); stroke-width: 3; }
.supremum .plain .box { fill: none; }
.supremum .mid { text-anchor: middle; }"""


def to_svg(diagram: Diagram) -> str:
    """Draw the diagram as a self-contained SVG, light and dark, with the lowest elements at the left.

    Args:
        diagram: the diagram.

    >>> nodes = (Node("int8", "integer"), Node("int16", "integer"))
    >>> drawn = to_svg(Diagram("two", nodes, (("int8", "int16"),)))
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
    content, told = Block(layout.width, layout.height, "\n".join(drawn)), " ".join(sentences)
    return picture(diagram.title, content, diagram.caption, diagram.legend, description=told, style=_STYLE)


def _label(node: Node, layout: Layout) -> str:
    box = layout.boxes[node.text]
    style = f"{node.style}{' dashed' if node.dashed else ''}{' lit' if node.lit else ''}"
    x, y = number(box.x), number(box.y)
    return (
        f'<g class="{style}"><rect class="box" x="{x}" y="{y}" width="{number(box.width)}" height="{number(HEIGHT)}" '
        f'rx="6"/><text class="mono mid" x="{number(box.x + box.width / 2)}" y="{number(box.y + 16)}">'
        f"{escape(node.text)}</text></g>"
    )


def _path(curves: tuple[Curve, ...]) -> str:
    parts: list[str] = []
    for (x, y), (end, there) in curves:
        middle = number((x + end) / 2)
        parts.append(f"{'L' if parts else 'M'}{number(x)} {number(y)}")
        parts.append(f"C{middle} {number(y)} {middle} {number(there)} {number(end)} {number(there)}")
    return " ".join(parts)
