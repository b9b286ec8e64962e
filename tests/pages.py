"""Read the tables of an HTML page with the standard library."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class ReadCell:
    """A cell: its attributes, visible text, mark, text for screen readers and explanation."""

    attributes: dict[str, str | None]
    parts: dict[str, str] = field(default_factory=lambda: dict.fromkeys(("", "mark", "unseen", "hint"), ""))

    @property
    def text(self):
        return self.parts[""]


@dataclass
class ReadTable:
    """A table: its caption, column headings, and labelled rows of cells."""

    caption: str = ""
    columns: list[str] = field(default_factory=list)
    rows: dict[str, list[ReadCell]] = field(default_factory=dict)

    def cells(self):
        """Return the cells by row and column."""
        return {
            (row, column): cell
            for row, cells in self.rows.items()
            for column, cell in zip(self.columns, cells, strict=True)
        }


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tables, self.entries, self.stack, self.row = [], {}, [], None

    def handle_starttag(self, tag, attrs):
        if tag in ("meta", "link", "wbr"):
            return
        attributes = dict(attrs)
        self.stack.append((tag, attributes))
        if tag == "table":
            self.tables.append(ReadTable())
        elif tag == "td":
            self.row.append(ReadCell(attributes))

    def handle_endtag(self, tag):
        opened, _ = self.stack.pop()
        assert opened == tag, f"<{opened}> is closed by </{tag}>"

    def handle_data(self, data):
        tags = [tag for tag, _ in self.stack]
        inner = self.stack[-1][1] if self.stack else {}
        scope = next(
            (attributes["scope"] for tag, attributes in self.stack if tag == "th" and "scope" in attributes), None
        )
        mark = next(
            (attributes["data-mark"] for tag, attributes in self.stack if tag == "li" and "data-mark" in attributes),
            None,
        )
        if "td" in tags:
            self.row[-1].parts[inner.get("class") if tags[-1] == "span" else ""] += data
        elif scope == "col":
            self.tables[-1].columns.append(data)
        elif scope == "row":
            self.row = self.tables[-1].rows[data] = []
        elif "caption" in tags:
            self.tables[-1].caption += data
        elif mark:
            self.entries[mark] = self.entries.get(mark, "") + data


def read(page):
    """Return the tables of a page, and the legend entries by the name of their mark."""
    reader = _Reader()
    reader.feed(page)
    assert reader.stack == []
    return reader.tables, reader.entries
