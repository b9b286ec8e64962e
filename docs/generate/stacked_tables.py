"""Tables and code that fit their windows: rows of many columns become lists in narrow ones, and lines break well."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

_COLUMNS = 3
"""The number of columns from which on a table does not fit on a phone."""
_TABLE = re.compile(r"<table class=\"[^\"]*\bdocutils\b.*?</table>", re.DOTALL)
_HEADING = re.compile(r"<h[123]>.*?</h[123]>", re.DOTALL)
_TEXT = re.compile(r"(?<=>)[^<>]+(?=<)")
_LONG_WORD = re.compile(r"\S{20,}")
_AFTER = re.compile(r"(?<=[_.,(/=])(?=\w)(?!py\b)")
_UNIT = re.compile(r"(?<=\d) (?=(?:[un]?s|ms|x|%|[KMG]iB)\b|%)")
_CODE = re.compile(r"<code\b.*?</code>|<pre\b.*?</pre>", re.DOTALL)
_OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")


def breakable(page: str) -> str:
    """Return a page that allows line breaks inside long paths, names and calls; in tables none are before units.

    Args:
        page: HTML.

    >>> breakable(
    ...     '<table class="docutils"><td>jax_numpy_dtype_promotion and jax_x64</td></table>'
    ... )
    '<table class="docutils"><td>jax_<wbr>numpy_<wbr>dtype_<wbr>promotion and jax_x64</td></table>'
    >>> breakable("<h1>supremum.cast_outcome</h1>")
    '<h1>supremum.<wbr>cast_<wbr>outcome</h1>'
    >>> breakable('<table class="docutils"><td>numpy, 0.3 us</td></table>')
    '<table class="docutils"><td>numpy, 0.3&nbsp;us</td></table>'
    """

    def broken(text: re.Match[str]) -> str:
        words = _LONG_WORD.sub(lambda word: _AFTER.sub("<wbr>", word[0]), text[0])
        return _UNIT.sub("&nbsp;", words)

    def parted(text: re.Match[str]) -> str:
        return _AFTER.sub("<wbr>", text[0])

    page = _HEADING.sub(lambda heading: _TEXT.sub(parted, heading[0]), page)
    return _TABLE.sub(lambda table: _TEXT.sub(broken, table[0]), page)


def with_whole_options(page: str) -> str:
    """Return a page whose code has no line break inside command-line options, where browsers break at hyphens.

    Args:
        page: HTML.

    >>> with_whole_options("<p>a --b <code>casts --fail-on all</code></p>")
    '<p>a --b <code>casts <span class="option">--fail-on</span> all</code></p>'
    """

    def whole(text: re.Match[str]) -> str:
        return _OPTION.sub(r'<span class="option">\g<0></span>', text[0])

    return _CODE.sub(lambda code: _TEXT.sub(whole, code[0]), page)


class StackedTables(SphinxPostTransform):
    """Put the heading of its column into each cell; `site.css` shows these labels in narrow windows only."""

    default_priority = 900  # after references are resolved
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:  # noqa: ARG002  # Sphinx passes arguments
        """Label the tables of the document."""
        for table in self.document.findall(nodes.table):
            label_cells(table)


def label_cells(table: nodes.table) -> None:
    """Label the cells of a table in place if it has a heading and too many columns for a phone.

    Args:
        table: the table.
    """
    heads = [[entry.astext() for entry in row] for head in table.findall(nodes.thead) for row in head]
    if not heads or len(heads[0]) < _COLUMNS:
        return
    table["classes"].append("stacked")
    for body in table.findall(nodes.tbody):
        for row in body:
            for head, entry in list(zip(heads[0], row, strict=True))[1:]:
                if entry.astext():
                    entry.insert(0, nodes.inline("", head, classes=["cell-label"]))
