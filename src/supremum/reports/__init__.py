"""What reports on programs share: rows, tables, pages, JSON and pictures.

It depends on neither JAX nor dtypes: what a row says comes from the package that made the report.
"""

from supremum.public_names import public_names
from supremum.reports.bars import Bar, bars_picture
from supremum.reports.exponents import (
    ExponentAxis,
    Exponents,
    Span,
    axis_of,
    exponents_picture,
    exponents_to_html,
    legend_to_html,
)
from supremum.reports.page import PageGroup, PageRow, PageSection, operation_row, report_page
from supremum.reports.pictures import MOST_DRAWN as MOST_DRAWN
from supremum.reports.report import Report, plural
from supremum.reports.rows import (
    OperationRow,
    SourceLine,
    plain_data,
    plain_fields,
    rows_by,
    short_names,
    short_place,
)
from supremum.reports.source_context import SourceRange, source_lines
from supremum.reports.tables import SHOWN as SHOWN
from supremum.reports.tables import Column, RowTable

__all__ = [
    "Bar", "Column", "ExponentAxis", "Exponents", "OperationRow", "PageGroup", "PageRow", "PageSection", "Report",
    "RowTable", "SourceLine", "SourceRange", "Span", "axis_of", "bars_picture", "exponents_picture",
    "exponents_to_html", "legend_to_html", "operation_row", "plain_data", "plain_fields", "plural", "report_page",
    "rows_by", "short_names", "short_place", "source_lines",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
