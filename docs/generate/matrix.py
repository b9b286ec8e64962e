"""The matrix of distances: the number of pairs of types for which two rule sets differ."""

from __future__ import annotations

from functools import cache
from html import escape
from itertools import combinations

from generate.markup import markdown_table, raw_html, scrolling_table
from supremum.analysis.comparison import compare
from supremum.analysis.tables import STANDARD_TYPES
from supremum.rules.names import HOMES

_CELLS = len(STANDARD_TYPES) ** 2


def matrix_page() -> str:
    """Return the matrix, and the three nearest rule sets of each, in Markdown."""
    intro = (
        f"The table counts the pairs, among {_CELLS} ordered pairs of standard types and Python numbers, "
        "for which `result_type` differs between two rule sets, or for which only one of them refuses. `supremum "
        "diff` lists the pairs, for any operation."
    )
    rows = [(f"[`{name}`]({name}.md)", _nearest(name)) for name in HOMES]
    parts = [
        "# Distances between rule sets",
        intro,
        _matrix(),
        "## Nearest rule sets",
        markdown_table(("rule set", "nearest"), rows),
    ]
    return "\n\n".join(parts) + "\n"


@cache
def _counts() -> dict[frozenset[str], int]:
    return {frozenset(pair): len(compare(*pair).differing) for pair in combinations(HOMES, 2)}


def _nearest(name: str) -> str:
    others = sorted((_counts()[frozenset((name, other))], other) for other in HOMES if other != name)[:3]
    return ", ".join(f"`{other}` ({count})" for count, other in others)


def _matrix() -> str:
    head = "".join(f'<th scope="col"><span>{escape(name)}</span></th>' for name in HOMES)
    rows = "\n".join(f'<tr><th scope="row">{escape(a)}</th>{"".join(_cell(a, b) for b in HOMES)}</tr>' for a in HOMES)
    return raw_html(scrolling_table(head, rows, "distances between rule sets", "matrix"))


def _cell(a: str, b: str) -> str:
    if a == b:
        return "<td></td>"
    count = _counts()[frozenset((a, b))]
    return f'<td style="--share: {100 * count // _CELLS}%" title="{escape(a)} and {escape(b)}">{count}</td>'
