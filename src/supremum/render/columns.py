"""Lines of short texts in columns, as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def aligned(lines: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """Lines whose columns are as wide as their widest text.

    Args:
        lines: texts; all lines have as many.
        right: the columns whose texts stand at the right, such as numbers.

    >>> print(aligned([("name", "n"), ("dense", "12")], right=frozenset({1})))
    name    n
    dense  12
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if place in right else text.ljust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def columns_to_html(title: str, lines: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """Lines as an HTML fragment that needs no style sheet; the first one has the headings.

    Args:
        title: what stands above them.
        lines: texts; all lines have as many.
        right: the columns whose texts stand at the right.
    """

    def row(line: Sequence[str], tag: str) -> str:
        aligns = ("right" if place in right else "left" for place in range(len(line)))
        cells = (
            f'<{tag} style="text-align:{side};padding:0 .6em">{escape(text)}</{tag}>'
            for side, text in zip(aligns, line, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    head, *rest = lines
    body = "".join(row(line, "td") for line in rest)
    return f"<div><b>{escape(title)}</b><table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table></div>"
