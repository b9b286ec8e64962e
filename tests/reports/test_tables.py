"""Rows of reports: their table at every width of the terminal, their groups, and as plain data."""

import json

import pytest

from supremum.errors import UnknownNameError
from supremum.reports import Column, OperationRow, RowTable, plain_data, rows_by, short_names

COLUMNS = [
    Column("operation", lambda row: row.primitive),
    Column("scope", lambda row: row.scope, optional=True),
    Column("line again", lambda row: str(row.line), right=True),
]


def row(line, scope="", file="a/model.py"):
    text = f"x{line} + y"
    return OperationRow(file=file, line=line, expression=text, scope=scope, primitive="add", backward=False)


@pytest.mark.parametrize("columns", [20, 30, 80])
def test_a_table_fits_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = RowTable([row(3), row(120)], COLUMNS).to_text("two rows of a program").splitlines()
    assert max(map(len, lines)) <= columns
    is_table = "line          expression  operation  line again" in lines
    assert is_table is (columns == 80)
    assert is_table is not any("operation add" in line for line in lines)


def test_a_column_without_texts_is_left_out_if_it_is_optional():
    assert "scope" not in RowTable([row(3)], COLUMNS).to_html("")
    assert "head" in RowTable([row(3), row(4, "head")], COLUMNS).to_html("")


def test_a_long_table_is_cut_in_text_but_not_in_html():
    table = RowTable([row(line) for line in range(45)], COLUMNS)
    assert table.to_text("rows").endswith("\n... and 5 more")
    assert table.to_html("rows").count("<tr>") == 46
    assert RowTable([], COLUMNS).to_text("no rows") == "no rows"


def test_files_of_the_same_name_are_shown_with_their_paths():
    assert short_names(["a/m.py", "b/m.py", "n.py"]) == {"a/m.py": "a/m.py", "b/m.py": "b/m.py", "n.py": "n.py"}
    assert "b/model.py:4" in RowTable([row(3), row(4, file="b/model.py")], COLUMNS).to_html("")


def test_rows_are_grouped_by_line_scope_and_primitive():
    rows = [row(3), row(4, "head"), row(4)]
    assert {key: len(rows_by(key, rows)) for key in ("line", "scope", "primitive")} == {
        "line": 2, "scope": 2, "primitive": 1
    }  # fmt: skip
    with pytest.raises(UnknownNameError, match="unknown key of a report 'lines'"):
        rows_by("lines", rows)


def test_plain_data_is_json_without_numbers_that_json_does_not_have():
    data = plain_data({"rows": (row(3),), "error": float("nan"), 2: float("-inf")})
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["error"], data["2"], data["rows"][0]["line"]) == (None, None, 3)
