"""The matrix of distances: the number of pairs of types for which two rule sets differ."""

from __future__ import annotations

from functools import cache
from html import escape

from generate.markup import markdown_table, raw_html
from supremum.analysis.distance import distances
from supremum.render import sideways_hint
from supremum.rules.names import HOMES

_distances = cache(distances)


def matrix_page() -> str:
    """Return the matrix, and the three nearest rule sets of each, in Markdown."""
    intro = (
        f"The table counts the pairs, among {_distances().cells} ordered pairs of standard types and Python numbers, "
        "for which `result_type` differs between two rule sets, or for which only one of them refuses. `supremum "
        "diff` lists the pairs, and `supremum diff --all -o all.html` draws this table for any operation."
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


def _nearest(name: str) -> str:
    others = sorted((_distances().count(name, other), other) for other in HOMES if other != name)[:3]
    return ", ".join(f"`{other}` ({count})" for count, other in others)


def _matrix() -> str:
    head = "".join(f'<th scope="col"><span>{escape(name)}</span></th>' for name in _distances().names)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(a)}</th>{"".join(_cell(a, b) for b in _distances().names)}</tr>'
        for a in _distances().names
    )
    return raw_html(
        f"{sideways_hint()}\n"
        '<div class="kind-scroll" tabindex="0" role="region" aria-label="distances between rule sets">\n'
        f'<table class="kind-table matrix"><thead><tr><td></td>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _cell(a: str, b: str) -> str:
    if a == b:
        return "<td></td>"
    count = _distances().count(a, b)
    return f'<td style="--share: {100 * count // _distances().cells}%" title="{escape(a)} and {escape(b)}">{count}</td>'
