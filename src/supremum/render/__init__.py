"""Rendering plain data as text, Markdown, HTML and SVG. It depends on neither dtypes nor array libraries."""

from supremum.public_names import public_names
from supremum.render.bars import Bar as Bar
from supremum.render.bars import bars_picture as bars_picture
from supremum.render.document import Document, aligned, columns_to_html, document_to_html, document_to_text
from supremum.render.document import fitted as fitted
from supremum.render.document import shortened as shortened
from supremum.render.exponents import (
    Axis,
    Exponents,
    Span,
    axis_of,
    exponents_picture,
    exponents_to_html,
    legend_to_html,
)
from supremum.render.hasse import Diagram, Node, hasse_to_dot, hasse_to_svg
from supremum.render.page_parts import icon_link, page_part, sideways_hint
from supremum.render.row_pages import PageRow, PageSection, rows_page
from supremum.render.side_by_side import Note, SideBySide, side_by_side_to_html, side_by_side_to_svg
from supremum.render.svg import PALETTE
from supremum.render.table import Cell, Mark, Table, table_to_html, table_to_markdown

__all__ = [
    "PALETTE",
    "Axis",
    "Cell",
    "Diagram",
    "Document",
    "Exponents",
    "Mark",
    "Node",
    "Note",
    "PageRow",
    "PageSection",
    "SideBySide",
    "Span",
    "Table",
    "aligned",
    "axis_of",
    "columns_to_html",
    "document_to_html",
    "document_to_text",
    "exponents_picture",
    "exponents_to_html",
    "hasse_to_dot",
    "hasse_to_svg",
    "icon_link",
    "legend_to_html",
    "page_part",
    "rows_page",
    "side_by_side_to_html",
    "side_by_side_to_svg",
    "sideways_hint",
    "table_to_html",
    "table_to_markdown",
]


def __dir__() -> list[str]:
    return public_names(globals())
