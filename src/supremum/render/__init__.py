"""Plain data into text, Markdown, HTML and SVG. Knows no dtype and no array library."""

from supremum.render.columns import aligned, columns_to_html
from supremum.render.document import Document
from supremum.render.table import Cell, Mark, Table

__all__ = ["Cell", "Document", "Mark", "Table", "aligned", "columns_to_html"]
