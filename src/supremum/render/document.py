"""A titled list of labelled lines, as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Document:
    """A title, a subtitle and labelled lines.

    Args:
        title: the title.
        subtitle: a smaller text beside the title.
        rows: pairs of label and text; an empty label continues the one above.
        ok: whether the document reports success, which sets the colour of the title in HTML.
    """

    title: str
    subtitle: str
    rows: tuple[tuple[str, str], ...]
    ok: bool = True


def to_text(document: Document) -> str:
    """The document as plain text."""
    width = max((len(label) for label, _ in document.rows), default=0)
    lines = [f"{document.title}   [{document.subtitle}]"]
    lines += [f"  {label:<{width}}  {text}" for label, text in document.rows]
    return "\n".join(lines)


def to_html(document: Document) -> str:
    """The document as an HTML fragment that needs no style sheet."""
    colour = "#2e7d32" if document.ok else "#c62828"
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(label)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for label, text in document.rows
    )
    return (
        f'<div><b style="color:{colour}">{escape(document.title)}</b> '
        f"<small>{escape(document.subtitle)}</small><table>{rows}</table></div>"
    )
