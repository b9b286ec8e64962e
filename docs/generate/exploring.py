"""Separate pages: the explorer, and the two tables of each move between frameworks."""

from __future__ import annotations

from generate.markup import raw_html
from supremum.analysis.comparison import compare
from supremum.explorer import explorer_page
from supremum.render import side_by_side_to_html

_LINK = '<a href="_static/explorer.html">Explore every rule set</a>'
EXPLORER_LINK = f"<p>{_LINK}: type operands to see every decision, or compare two rule sets cell by cell.</p>"
"""The link from the first page to the explorer, in HTML."""


def explorer_files() -> dict[str, str]:
    """Return the explorer, by its path."""
    return {"static/explorer.html": explorer_page()}


def both_tables(before: str, after: str) -> dict[str, str]:
    """Return a page with the tables of two rule sets side by side and the differing cells marked, by its path.

    Args:
        before: name of one rule set.
        after: name of the other rule set.
    """
    return {f"static/tables/{before}-{after}.html": side_by_side_to_html(compare(before, after).side_by_side())}


def tables_link(before: str, after: str) -> str:
    """Return the link to that page from a page below migration/, in Markdown."""
    link = f'<a href="../../_static/tables/{before}-{after}.html">Both tables side by side</a>'
    return raw_html(f"<p>{link}, with the differing cells marked.</p>")
