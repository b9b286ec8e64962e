"""A Hasse diagram as a self-contained picture."""

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
    """The diagram as one self-contained picture, light and dark, from the lowest at the left to the highest.

    Args:
        diagram: what to draw.

    >>> nodes = (Node("int8", "integer"), Node("int16", "integer"))
    >>> drawn = to_svg(Diagram("two", nodes, (("int8", "int16"),)))
    >>> drawn.startswith("<svg"), drawn.count("<path")
    (True, 1)
    """
    layout = laid_out(diagram)
    edges = [
        (edge in diagram.lit, _path(curves), edge) for edge, curves in sorted(layout.curves.items(), key=lambda e: e[0])
    ]
    # What is lit lies over what is not, and labels over all.
    drawn = [f'<path class="edge" d="{path}"/>' for is_lit, path, _ in edges if not is_lit]
    drawn += [f'<g class="lit"><path class="edge" d="{path}"/></g>' for is_lit, path, _ in edges if is_lit]
    drawn += [_label(node, layout) for node in diagram.nodes]
    if layout.apart is not None and diagram.apart:
        drawn.append(f'<text y="{number(layout.apart + 13)}">{escape(diagram.apart)}</text>')
    content = Block(layout.width, layout.height, "\n".join(drawn))
    return picture(
        diagram.title,
        content,
        caption=diagram.caption,
        entries=diagram.legend,
        description=_description(diagram),
        style=_STYLE,
    )


def _description(diagram: Diagram) -> str:
    above: dict[str, list[str]] = {}
    for lower, upper in diagram.edges:
        above.setdefault(lower, []).append(upper)
    return " ".join((*diagram.caption, *(f"{node} is below {', '.join(uppers)}." for node, uppers in above.items())))


def _label(node: Node, layout: Layout) -> str:
    box = layout.boxes[node.text]
    style = " ".join((node.style, *(["dashed"] if node.dashed else []), *(["lit"] if node.lit else [])))
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
