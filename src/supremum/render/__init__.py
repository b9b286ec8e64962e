"""Plain data as text, Markdown, HTML and SVG.

It depends on neither dtypes nor array libraries.
"""

from supremum.public_names import public_names
from supremum.render.document import Document, aligned, columns_to_html, document_to_html, document_to_text
from supremum.render.document import fitted as fitted
from supremum.render.document import shortened as shortened
from supremum.render.hasse import Diagram, Node, hasse_to_dot, hasse_to_svg
from supremum.render.page_parts import icon_link, page_part, sideways_hint
from supremum.render.side_by_side import SideBySide, side_by_side_to_html, side_by_side_to_svg
from supremum.render.svg import PALETTE
from supremum.render.svg import Drawing as Drawing
from supremum.render.svg import number as number
from supremum.render.svg import picture as picture
from supremum.render.svg import stacked as stacked
from supremum.render.svg import text_width as text_width
from supremum.render.table import Cell, Mark, Table, table_to_html, table_to_markdown

__all__ = [
    "PALETTE",
    "Cell",
    "Diagram",
    "Document",
    "Mark",
    "Node",
    "SideBySide",
    "Table",
    "aligned",
    "columns_to_html",
    "document_to_html",
    "document_to_text",
    "hasse_to_dot",
    "hasse_to_svg",
    "icon_link",
    "page_part",
    "side_by_side_to_html",
    "side_by_side_to_svg",
    "sideways_hint",
    "table_to_html",
    "table_to_markdown",
]


def __dir__() -> list[str]:
    return public_names(globals())
