"""What a page of tables says, read from its HTML by the standard library."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class ReadCell:
    """One cell: its attributes, the text to be seen, the sign of its mark, what is only read, and the explanation."""

    attributes: dict[str, str | None]
    parts: dict[str, str] = field(default_factory=lambda: dict.fromkeys(("", "mark", "unseen", "hint"), ""))

    @property
    def text(self):
        return self.parts[""]


@dataclass
class ReadTable:
    """One table: its caption, headings of columns, and labelled rows of cells."""

    caption: str = ""
    columns: list[str] = field(default_factory=list)
    rows: dict[str, list[ReadCell]] = field(default_factory=dict)

    def cells(self):
        """The cells by row and column."""
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
        if tag in ("meta",):
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
        marked = next(
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
        elif marked:
            self.entries[marked] = self.entries.get(marked, "") + data


def read(page):
    """The tables of a page, and the entries of its legend of marks by the mark's name."""
    reader = _Reader()
    reader.feed(page)
    assert reader.stack == []
    return reader.tables, reader.entries
