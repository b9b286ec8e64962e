"""Plain data into text, Markdown and HTML. Knows no dtype and no array library."""

from supremum.render.columns import aligned, columns_to_html
from supremum.render.document import Document
from supremum.render.table import Cell, Table

__all__ = ["Cell", "Document", "Table", "aligned", "columns_to_html"]
