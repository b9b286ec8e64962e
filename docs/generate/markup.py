"""Parts of pages: Markdown tables, and tables of dtypes coloured by kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from supremum.analysis.tables import RuleTable, short_name, with_short_names
from supremum.render import PALETTE, Cell, sideways_hint

NOTATION = (
    "A short name has a letter for the kind and the number of bits: `u8` is uint8, `bf16` bfloat16 and `c64` "
    "complex64. `i*`, `f*` and `c*` are weak: Python numbers and, in frameworks with weak arrays, arrays made of them."
)
"""The legend of the short names in tables."""


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""Return a table in Markdown; a bar in a text is escaped.

    >>> print(markdown_table(("a", "b"), [("1", "x|y")]))
    | a | b |
    |---|---|
    | 1 | x\|y |
    """

    def line(texts: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

    return "\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)])


def codes(words: str) -> str:
    """Return words as code in Markdown, with short names for types.

    >>> codes("float16[:] tensor")
    '`f16[:]` `tensor`'
    """
    return " ".join(f"`{with_short_names(word)}`" for word in words.split())


def raw_html(html: str) -> str:
    """Return HTML as MyST includes it."""
    return f"```{{raw}} html\n{html}\n```"


def kind_legend(entries: Iterable[tuple[str, str]]) -> str:
    """Return the legend of a coloured table as HTML.

    Args:
        entries: pairs of a key of `PALETTE` and its meaning.
    """
    meanings = "".join(f'<span class="kind-{style}">{escape(meaning)}</span>' for style, meaning in entries)
    return f'<p class="kind-legend">{meanings}</p>\n'


def kind_table(table: RuleTable, label: str) -> str:
    """Return the table of a rule set as HTML, with its legend; `kinds_css` colours it.

    Cells have short names of types, which the row headings explain, to make the table fit on a page.

    Args:
        table: the table; each cell's explanation appears when you point at it.
        label: the label for screen readers.
    """
    drawing = table.drawing()
    head = "".join(f'<th scope="col" title="{escape(name)}">{escape(short_name(name))}</th>' for name in table.types)
    body = "\n".join(
        f'<tr><th scope="row">{_heading(name)}</th>{"".join(map(_cell, cells))}</tr>'
        for name, (_, cells) in zip(table.types, drawing.rows, strict=True)
    )
    return raw_html(kind_legend(drawing.legend) + scrolling_table(head, body, label, "codes"))


def scrolling_table(head: str, body: str, label: str, style: str) -> str:
    """Return a table that scrolls sideways in a narrow window, as HTML.

    Args:
        head: the headings of the columns, in HTML.
        body: the rows, in HTML.
        label: the label for screen readers.
        style: a class of the table.
    """
    return (
        f"{sideways_hint()}\n"
        f'<div class="kind-scroll" tabindex="0" role="region" aria-label="{escape(label)}">\n'
        f'<table class="kind-table {style}"><thead><tr><td></td>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _heading(name: str) -> str:
    short = escape(short_name(name))
    return short if short == name else f"{short} <small>{escape(name)}</small>"


def _cell(cell: Cell) -> str:
    # Line breaks are allowed in attributes, but an empty line would end the HTML in some Markdown.
    hint = escape(cell.hint).replace("\n", "&#10;")
    title = f' title="{hint}"' if hint else ""
    return f'<td class="kind-{cell.style}{" kind-marked" if cell.marked else ""}"{title}>{escape(cell.text)}</td>'


def kinds_css() -> str:
    """Return a style sheet with the colours of kinds, for the theme's three settings: light, dark and automatic."""
    light, dark = ("".join(f"--kind-{style}: {pair[place]}; " for style, pair in PALETTE.items()) for place in (0, 1))
    rules = "\n".join(f".kind-{style} {{ background: var(--kind-{style}); }}" for style in PALETTE)
    return (
        f"body {{ {light}}}\nbody[data-theme=dark] {{ {dark}}}\n"
        f"@media (prefers-color-scheme: dark) {{ body:not([data-theme=light]) {{ {dark}}} }}\n{rules}\n"
    )
