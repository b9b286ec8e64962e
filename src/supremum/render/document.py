"""Short texts in lines and columns, as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from supremum.errors import printable


@dataclass(frozen=True, slots=True)
class Document:
    """A title, a subtitle and labelled lines.

    Args:
        title: the title.
        subtitle: a smaller text next to the title.
        rows: pairs of label and text; an empty label continues the one above.
        ok: whether the title is green in HTML; otherwise it is gray.

    >>> print(
    ...     document_to_text(
    ...         Document("model", "2 layers", (("dense", "12"), ("norm", "4")))
    ...     )
    ... )
    model   [2 layers]
      dense  12
      norm   4
    """

    title: str
    subtitle: str
    rows: tuple[tuple[str, str], ...]
    ok: bool = True


def document_to_text(document: Document) -> str:
    """The document as plain text.

    >>> print(
    ...     document_to_text(
    ...         Document(
    ...             "model", "1 layer", (("dense", "12 weights"), ("", "4 biases"))
    ...         )
    ...     )
    ... )
    model   [1 layer]
      dense  12 weights
             4 biases
    """
    rows = [(printable(label), printable(text)) for label, text in document.rows]
    width = max((len(label) for label, _ in rows), default=0)
    lines = [printable(f"{document.title}   [{document.subtitle}]")]
    lines += [f"  {label:<{width}}  {text}" for label, text in rows]
    return "\n".join(lines)


def document_to_html(document: Document) -> str:
    """The document as an HTML fragment that needs no style sheet.

    >>> page = document_to_html(
    ...     Document("a < b", "refused", (("a", "int8"),), ok=False)
    ... )
    >>> page.split("</b>")[0]
    '<div><b style="color:#6b7280">a &lt; b'
    """
    colour = "#2e7d32" if document.ok else "#6b7280"
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(label)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for label, text in document.rows
    )
    return (
        f'<div><b style="color:{colour}">{escape(document.title)}</b> '
        f"<small>{escape(document.subtitle)}</small><table>{rows}</table></div>"
    )


_SHORTEST = 8
"""The shortest length to which `aligned` cuts a text."""


def aligned(lines: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset(), width: int | None = None) -> str:
    """Format rows in columns that are as wide as their widest text.

    Args:
        lines: rows of texts, all of the same length.
        right: the right-aligned columns, such as numbers.
        width: the largest length of a line; in rows that would be longer, the longest texts of the other columns lose
            their middle, down to 8 characters. None for no limit.

    >>> print(aligned([("name", "n"), ("encoder/dense", "12")], right=frozenset({1})))
    name            n
    encoder/dense  12
    >>> print(
    ...     aligned(
    ...         [("name", "n"), ("encoder/dense", "12")], right=frozenset({1}), width=14
    ...     )
    ... )
    name         n
    encod…ense  12
    """
    lines = [[printable(text) for text in line] for line in lines]
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    excess = 0 if width is None else sum(sizes) + 2 * (len(sizes) - 1) - width
    for _ in range(excess):
        size, place = max(((size, place) for place, size in enumerate(sizes) if place not in right), default=(0, 0))
        if size <= _SHORTEST:
            break
        sizes[place] -= 1
    rows = [
        [
            text.rjust(size) if place in right else _without_middle(text, size).ljust(size)
            for place, (text, size) in enumerate(zip(line, sizes, strict=True))
        ]
        for line in lines
    ]
    return "\n".join("  ".join(row).rstrip() for row in rows)


def _without_middle(text: str, size: int) -> str:
    if len(text) <= size:
        return text
    return f"{text[: size // 2]}…{text[len(text) - (size - 1) // 2 :]}"


_NARROWEST = 12
_GAP = 2


def fitted(lines: Sequence[tuple[str, ...]], width: int, column: int) -> list[tuple[str, ...]]:
    """Shorten the texts of one column so that a table of `aligned` is at most so wide, where that is possible.

    Args:
        lines: rows of texts, all of the same length.
        width: the most characters in a line of the table.
        column: the column with the long texts; at least 12 characters of it stay.

    >>> print(aligned(fitted([("sum(x * x + y * y)", "12")], 20, 0)))
    sum(x * x + y...  12
    """
    widths = [max(map(len, texts)) for texts in zip(*lines, strict=True)]
    others = sum(widths) - widths[column] + _GAP * (len(widths) - 1)
    room = max(_NARROWEST, width - others)
    return [(*line[:column], shortened(line[column], room), *line[column + 1 :]) for line in lines]


def shortened(text: str, width: int) -> str:
    """A text with at most so many characters; dots stand for what is cut off.

    >>> shortened("x @ weights", 8)
    'x @ w...'
    """
    return text if len(text) <= width else f"{text[: width - 3]}..."


def columns_to_html(title: str, lines: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """Format rows as an HTML table that needs no style sheet; the first row has the headings.

    Args:
        title: the title above the table.
        lines: rows of texts, all of the same length.
        right: the right-aligned columns.

    >>> page = columns_to_html(
    ...     "Layers", [("name", "n"), ("dense", "12")], right=frozenset({1})
    ... )
    >>> page.count("<th"), page.count("<td"), "text-align:right" in page
    (3, 2, True)
    """

    def row(line: Sequence[str], tag: str) -> str:
        sides = ("right" if place in right else "left" for place in range(len(line)))
        style = 'style="text-align:{};padding:0 .6em"'.format
        cells = (f"<{tag} {style(side)}>{escape(text)}</{tag}>" for side, text in zip(sides, line, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    head, *rest = lines
    body = "".join(row(line, "td") for line in rest)
    return f"<div><b>{escape(title)}</b><table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table></div>"
