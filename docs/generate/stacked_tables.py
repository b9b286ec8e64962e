"""Label the cells of tables with many columns, so that a narrow window can show each row as a list."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

_COLUMNS = 4
"""The number of columns from which on a table does not fit on a phone."""


class StackedTables(SphinxPostTransform):
    """Put the heading of its column into each cell; `site.css` shows these labels in narrow windows only."""

    default_priority = 900  # after references are resolved
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:  # noqa: ARG002  # Sphinx passes arguments
        """Label the tables of the document."""
        for table in self.document.findall(nodes.table):
            label_cells(table)


def label_cells(table: nodes.table) -> None:
    """Label the cells of a table in place if it has a heading and too many columns for a phone.

    Args:
        table: the table.
    """
    heads = [[entry.astext() for entry in row] for head in table.findall(nodes.thead) for row in head]
    if not heads or len(heads[0]) < _COLUMNS:
        return
    table["classes"].append("stacked")
    for body in table.findall(nodes.tbody):
        for row in body:
            for head, entry in list(zip(heads[0], row, strict=True))[1:]:
                if entry.astext():
                    entry.insert(0, nodes.inline("", head, classes=["cell-label"]))
