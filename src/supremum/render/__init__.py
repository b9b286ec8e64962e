"""Rendering plain data as text, Markdown, HTML and SVG. It depends on neither dtypes nor array libraries."""

from supremum.render.columns import aligned, columns_to_html
from supremum.render.document import Document
from supremum.render.document import to_html as document_to_html
from supremum.render.document import to_text as document_to_text
from supremum.render.hasse import Diagram as Diagram
from supremum.render.hasse import Node as Node
from supremum.render.hasse_dot import to_dot as hasse_to_dot
from supremum.render.hasse_svg import to_svg as hasse_to_svg
from supremum.render.page import to_html as table_to_html
from supremum.render.side_by_side import Note as Note
from supremum.render.side_by_side import SideBySide as SideBySide
from supremum.render.side_by_side import to_html as side_by_side_to_html
from supremum.render.side_by_side import to_svg as side_by_side_to_svg
from supremum.render.table import PALETTE as PALETTE
from supremum.render.table import Cell, Mark, Table
from supremum.render.table import step as step
from supremum.render.table import to_markdown as table_to_markdown
from supremum.render.table_svg import to_svg as table_to_svg

__all__ = [
    "PALETTE",
    "Cell",
    "Diagram",
    "Document",
    "Mark",
    "Node",
    "Note",
    "SideBySide",
    "Table",
    "aligned",
    "columns_to_html",
    "document_to_html",
    "document_to_text",
    "hasse_to_dot",
    "hasse_to_svg",
    "side_by_side_to_html",
    "side_by_side_to_svg",
    "step",
    "table_to_html",
    "table_to_markdown",
    "table_to_svg",
]
