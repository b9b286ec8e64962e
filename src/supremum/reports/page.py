"""A self-contained page of reports: a row for each operation of a program, with its source, facts and a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.resources import files
from typing import TypeVar

from supremum.argument_checks import instance, mapping, text
from supremum.errors import shown
from supremum.extras import require
from supremum.render import icon_link, page_part
from supremum.reports.exponents import COLOURS
from supremum.reports.report import Report
from supremum.reports.rows import OperationRow, short_place
from supremum.reports.source_context import source_lines

R = TypeVar("R", bound=Report)


@dataclass(frozen=True, slots=True)
class PageRow:
    """A row of a page, which opens to show its details.

    Args:
        where: the source line, such as `"model.py:12"`.
        expression: its source text; empty if unknown.
        summary: what the row says, in one line.
        marks: short texts to stand out, each with its style: `"bad"`, `"warning"`, `"good"`, `"neutral"`, `"own"`, or
            empty.
        facets: what the row can be filtered by; every row of a page has the same ones.
        keys: numbers to sort by, the largest first; one for each of the page's orders.
        source: the source lines around the expression, each as its number and the text before, in and after it.
        facts: pairs of a name and what is known: a text, or several.
        fixes: for each problem the fixes to choose from.
        picture: HTML of a picture, such as `exponents_to_html` returns.
        groups: further rows, below the facts.
        is_open: whether the row is open from the start.

    >>> PageRow("model.py:12", "x / n", "NaN from 0 / 0").marks
    ()
    """

    where: str
    expression: str
    summary: str
    marks: Sequence[tuple[str, str]] = ()
    facets: Mapping[str, str] = field(default_factory=dict[str, str])
    keys: Sequence[float] = ()
    source: Sequence[tuple[int, str, str, str]] = ()
    facts: Sequence[tuple[str, str | Sequence[str]]] = ()
    fixes: Sequence[Sequence[str]] = ()
    picture: str = ""
    groups: Sequence[PageGroup] = ()
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class PageGroup:
    """Rows under a heading; a group without rows and without a table is not shown.

    Args:
        heading: the heading; empty for none.
        rows: the rows, in the first of the page's orders.
        is_folded: whether the rows are hidden until the reader opens the heading.
        table: the texts of a table, headings first.

    >>> PageGroup("Asked for", is_folded=True).rows
    ()
    """

    heading: str
    rows: Sequence[PageRow] = ()
    is_folded: bool = False
    table: Sequence[Sequence[str]] = ()


@dataclass(frozen=True, slots=True)
class PageSection:
    """The rows of a function; in its title, and in the texts of rows, backticks mean code.

    Args:
        title: what was found, in one sentence.
        groups: the rows.
        totals: short texts, each with its style; see `PageRow.marks`.
        legend: HTML that explains the pictures.

    >>> PageSection(
    ...     "1 origin", [PageGroup("", [PageRow("model.py:12", "x / n", "NaN")])]
    ... ).title
    '1 origin'
    """

    title: str
    groups: Sequence[PageGroup]
    totals: Sequence[tuple[str, str]] = ()
    legend: str = ""


def _rows_in(groups: Sequence[PageGroup]) -> list[PageRow]:
    """All rows, those inside of other rows included."""
    rows: list[PageRow] = []
    for group in groups:
        for row in group.rows:
            rows += [row, *_rows_in(row.groups)]
    return rows


def operation_row(
    row: OperationRow,
    names: Mapping[str, str],
    summary: str,
    *,
    facets: Mapping[str, str] | None = None,
    facts: Sequence[tuple[str, str | Sequence[str]]] = (),
    marks: Sequence[tuple[str, str]] = (),
    keys: Sequence[float] = (),
    fixes: Sequence[Sequence[str]] = (),
    picture: str = "",
) -> PageRow:
    """Make the row of a page for an operation, with its source lines and the calls that led to it.

    Args:
        row: the operation.
        names: the short names of files, as `short_names` returns them.
        summary: what the row says, in one line.
        facets: more to filter by than file, scope, operation and pass.
        facts: what is known.
        marks: as for `PageRow`, like the following.
        keys: numbers to sort by.
        fixes: for each problem the fixes to choose from.
        picture: HTML of a picture.

    >>> add = OperationRow(
    ...     file="model.py",
    ...     line=3,
    ...     expression="x + y",
    ...     scope="",
    ...     primitive="add",
    ...     backward=False,
    ... )
    >>> operation_row(add, {"model.py": "model.py"}, "2 runs").facets["Pass"]
    'forward'
    """
    calls = [("called from", row.calls)] if row.calls else []
    return PageRow(
        short_place(names, row),
        row.expression,
        summary,
        facets={
            "File": names[row.file],
            "Scope": row.scope,
            "Operation": row.primitive,
            **(facets or {}),
            "Pass": "backward" if row.backward else "forward",
        },
        source=source_lines(row.file, row.line, row.path[-1] if row.path else None),
        facts=[*facts, *calls],
        marks=marks,
        keys=keys,
        fixes=fixes,
        picture=picture,
    )


def report_page(
    name: str,
    reports: Mapping[str, R],
    kind: type[R],
    section: Callable[[R], PageSection],
    *,
    title: str,
    subtitle: str,
    call: str,
    placeholder: str,
    orders: Sequence[str] = (),
) -> str:
    """Make a self-contained page of reports to sort and filter, in light and dark; it needs no network.

    Args:
        name: the name of the argument that has the reports, such as `"profiles"`.
        reports: the reports by the names of the functions.
        kind: the class of the reports.
        section: makes the section of a report.
        title: the heading of the page.
        subtitle: what the page is about, in one sentence.
        call: an expression that returns a report, for errors.
        placeholder: an example of a text to filter by.
        orders: the orders that the rows can be sorted in, the one that they are in first; with fewer than two there is
            nothing to choose.

    Returns:
        The page as HTML.

    Raises:
        OperandError: for anything but reports by name; a `TypeError`.
        MissingPackageError: without Jinja2, which `supremum[cli]` installs.

    >>> class Found(Report):
    ...     title = "1 origin"
    ...
    ...     def to_dict(self):
    ...         return {}
    >>> row = PageRow("model.py:12", "x / n", "NaN from 0 / 0", [("NaN", "bad")])
    >>> page = report_page(
    ...     "origins",
    ...     {"loss": Found()},
    ...     Found,
    ...     lambda found: PageSection(found.title, [PageGroup("", [row])]),
    ...     title="NaNs",
    ...     subtitle="Where they began.",
    ...     call="first_nonfinite(loss)(x)",
    ...     placeholder="log",
    ... )
    >>> "<h2>loss</h2>" in page, "x / n" in page
    (True, True)
    """
    require(f"The page of {name}", "jinja2")
    from jinja2 import Environment  # from the extra "cli"

    for function, report in mapping(name, reports, f"{{'loss': {call}}}").items():
        text(f"each name in {name}", function)
        instance(f"{name}[{shown(function)}]", report, kind, f"an instance of {kind.__name__}, as {call} returns")
    folder = files("supremum.reports")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["with_code"] = _with_code
    template = environment.from_string((folder / "report.html.j2").read_text("utf-8"))
    sections = {function: section(report) for function, report in reports.items()}
    rows = [row for each in sections.values() for row in _rows_in(each.groups)]
    facets = list(dict.fromkeys(facet for row in rows for facet in row.facets))
    choices = {facet: sorted({row.facets[facet] for row in rows}) for facet in facets}
    colours = "\n".join(f"  --{name}: light-dark({light}, {dark});" for name, (light, dark) in COLOURS.items())
    style = page_part("shared.css") + f":root {{\n{colours}\n}}\n" + (folder / "report.css").read_text("utf-8")
    return template.render(
        title=title,
        subtitle=subtitle,
        sections=sections,
        orders=orders,
        filters={facet: list(filter(None, values)) for facet, values in choices.items() if len(values) > 1},
        facets=facets,
        placeholder=placeholder,
        icon=icon_link(),
        style=style,
        script=page_part("theme.js") + (folder / "report.js").read_text("utf-8"),
        version=version("supremum"),
    )


def _with_code(text: str) -> str:
    from markupsafe import Markup, escape  # Jinja2 needs it

    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # a backtick of the program
        pieces = [text]
    parts = [
        Markup("<code>{}</code>").format(piece) if place % 2 else escape(piece) for place, piece in enumerate(pieces)
    ]
    # A line must not break inside of an arrow.
    return Markup("").join(parts).replace(escape("->"), Markup('<span class="arrow">-&gt;</span>'))
