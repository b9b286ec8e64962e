"""A Hasse diagram in the DOT language of Graphviz (https://graphviz.org/doc/info/lang.html)."""

from __future__ import annotations

from supremum.render.hasse import Diagram, Node
from supremum.render.table import PALETTE

_LIT = "#b45309"


def to_dot(diagram: Diagram) -> str:
    """Write the diagram as a graph that `dot` lays out with the lowest elements at the left.

    Args:
        diagram: the diagram.

    >>> print(to_dot(Diagram("one", (Node("int*", "integer", dashed=True),), ())))
    digraph "one" {
      graph [rankdir=LR, label="one"];
      node [shape=box, fontname="monospace", fontcolor="#111111"];
      edge [dir=none, color="#8a8a8a"];
      "int*" [style="filled,rounded,dashed", fillcolor="#dbeafe"];
    }
    <BLANKLINE>
    """
    label = "\n".join((diagram.title, *diagram.caption))
    lines = [
        f"digraph {_quoted(diagram.title)} {{",
        f"  graph [rankdir=LR, label={_quoted(label)}];",
        '  node [shape=box, fontname="monospace", fontcolor="#111111"];',
        '  edge [dir=none, color="#8a8a8a"];',
        *map(_node, diagram.nodes),
    ]
    for lower, upper in diagram.edges:
        lit = f' [color="{_LIT}", penwidth=3]' if (lower, upper) in diagram.lit else ""
        lines.append(f"  {_quoted(lower)} -> {_quoted(upper)}{lit};")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _node(node: Node) -> str:
    style = "filled,rounded,dashed" if node.dashed else "filled,rounded"
    lit = f', color="{_LIT}", penwidth=3' if node.lit else ""
    return f'  {_quoted(node.text)} [style="{style}", fillcolor="{PALETTE[node.style][0]}"{lit}];'
