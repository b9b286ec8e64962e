"""A self-contained page of rows: an operation of a program in each, with its source, facts and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.resources import files

from supremum.render.exponents import COLOURS
from supremum.render.page_parts import icon_link, page_part


@dataclass(frozen=True, slots=True)
class PageRow:
    """A row of a page, which opens to show its details.

    Args:
        where: the source line, such as `"model.py:12"`.
        expression: its source text; empty if unknown.
        summary: what the row says, in one line.
        marks: short texts to stand out, each with its style: `"bad"`, `"warning"`, `"good"`, or empty.
        facets: what the row can be filtered by; every row of a page has the same ones.
        keys: numbers to sort by, the largest first; one for each of the page's orders.
        source: the source lines around the expression, each as its number and the text before, in and after it.
        facts: pairs of a name and what is known: a text, or several.
        fixes: for each problem the fixes to choose from.
        picture: HTML that the closed row shows, such as `exponents_to_html` returns.
        panel: HTML that the open row shows in its place.

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
    panel: str = ""


@dataclass(frozen=True, slots=True)
class PageSection:
    """The rows of a function; in its title and notes, and in the texts of rows, backticks mean code.

    Args:
        name: its name, such as `"loss(float32[8,128])"`.
        title: what was found, in one sentence.
        totals: short texts, each with its style; see `PageRow.marks`.
        notes: further sentences.
        rows: the rows, in the first of the page's orders.
        legend: HTML that explains the pictures.

    >>> PageSection(
    ...     "loss", "1 birth", rows=[PageRow("model.py:12", "x / n", "NaN")]
    ... ).name
    'loss'
    """

    name: str
    title: str
    totals: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    rows: Sequence[PageRow] = ()
    legend: str = ""


def rows_page(
    title: str,
    subtitle: str,
    sections: Sequence[PageSection],
    *,
    orders: Sequence[str] = (),
    placeholder: str = "",
    empty: str = "Nothing was found.",
) -> str:
    """Make a self-contained page of rows to sort and filter, in light and dark; it needs no network.

    Args:
        title: the heading of the page.
        subtitle: what the page is about, in one sentence.
        sections: the functions.
        orders: the orders that the rows can be sorted in, the one that they are in first; with fewer than two there is
            nothing to choose.
        placeholder: an example of a text to filter by.
        empty: what the page says without sections.

    Returns:
        The page as HTML.

    Raises:
        ModuleNotFoundError: without Jinja2; callers use `supremum.extras.require` first.

    >>> row = PageRow("model.py:12", "x / n", "NaN from 0 / 0", [("NaN", "bad")])
    >>> page = rows_page(
    ...     "NaNs", "Where they began.", [PageSection("loss", "1 birth", rows=[row])]
    ... )
    >>> "<h2>loss</h2>" in page, "x / n" in page
    (True, True)
    """
    from jinja2 import Environment  # from the extra "cli"

    folder = files("supremum.render")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["with_code"] = _with_code
    template = environment.from_string((folder / "rows.html.j2").read_text("utf-8"))
    rows = [row for section in sections for row in section.rows]
    names = dict.fromkeys(name for row in rows for name in row.facets)
    choices = {name: sorted({row.facets.get(name, "") for row in rows}) for name in names}
    colours = "\n".join(f"  --{name}: light-dark({light}, {dark});" for name, (light, dark) in COLOURS.items())
    return template.render(
        title=title,
        subtitle=subtitle,
        sections=sections,
        orders=orders,
        filters={name: list(filter(None, values)) for name, values in choices.items() if len(values) > 1},
        facets=list(names),
        placeholder=placeholder,
        empty=empty,
        icon=icon_link(),
        style=page_part("shared.css") + page_part("source.css") + f":root {{\n{colours}\n}}\n" + page_part("rows.css"),
        script=page_part("theme.js") + page_part("rows.js"),
        version=version("supremum"),
    )


def _with_code(text: str) -> str:
    from markupsafe import Markup, escape  # Jinja2 needs it

    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # a backtick of the program
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else escape(piece) for place, piece in enumerate(pieces)
    )
