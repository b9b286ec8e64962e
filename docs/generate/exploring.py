"""Pages beside those of the site: the explorer, and both tables of each move between frameworks."""

from __future__ import annotations

import os

from generate.markup import raw_html
from supremum.analysis.comparison import compare
from supremum.explorer import explorer_page
from supremum.render import side_by_side

# Of the operations those that people ask for most, for deciding all takes longer; `supremum explore` has them all.
_OPERATIONS = ("add", "divide", "pow", "less", "bitwise_and", "where")
_LINK = '<a href="_static/explorer.html">Explore every rule set</a>'
EXPLORER_LINK = f"<p>{_LINK}: type operands and see all answers, or compare two rule sets cell by cell.</p>"
"""What leads to the explorer from the first page, in HTML."""


def explorer_files() -> dict[str, str]:
    """The explorer by its path."""
    return {"static/explorer.html": explorer_page(operations=_OPERATIONS, processes=os.cpu_count() or 1)}


def both_tables(before: str, after: str) -> dict[str, str]:
    """Two rule sets' tables beside each other, the differing cells marked, by the path of the page.

    Args:
        before: name of the one.
        after: name of the other.
    """
    return {f"static/tables/{before}-{after}.html": side_by_side.to_html(compare(before, after).side_by_side())}


def tables_link(before: str, after: str) -> str:
    """What leads there from a page below migration/, in Markdown."""
    link = f'<a href="../../_static/tables/{before}-{after}.html">Both tables beside each other</a>'
    return raw_html(f"<p>{link}, with the cells marked that differ.</p>")
