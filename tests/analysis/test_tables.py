"""What tables of decisions show: short names, changed numbers and refusals."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from pages import read
from supremum.analysis.tables import STYLES, rule_table, short_name
from supremum.cli.app import app
from supremum.formats import format_names
from supremum.operands import WEAK_NAMES
from supremum.render import table_to_html, table_to_markdown
from supremum.render.table import table_block

TYPES = "int8,uint8,float16,1000,-1,70000.0"
WRAPS, OVERFLOWS = "i8, 1000 wraps to -24", "f16, 70000.0 overflows to inf"


def test_short_names_are_unique():
    names = (*format_names(), *WEAK_NAMES)
    assert len(set(map(short_name, names))) == len(names)
    assert [short_name(name) for name in ("int*", "float*", "complex*", "1000")] == ["i*", "f*", "c*", "1000"]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("torch", {("i8", "1000"): ("changed", WRAPS), ("u8", "-1"): ("changed", "u8, -1 wraps to 255")}),
        ("numpy", {("i8", "1000"): ("refused", "-"), ("f16", "70000.0"): ("changed", OVERFLOWS)}),
        ("numpy-legacy", {("i8", "1000"): ("integer", "i16"), ("f16", "70000.0"): ("float", "f32")}),
    ],
)
def test_a_changed_number_has_a_color_of_its_own_and_its_value_in_every_format(rules, expected):
    drawn = rule_table(rules, "add", TYPES).drawing()
    cells = {
        (row, column): cell for row, cells in drawn.rows for column, cell in zip(drawn.columns, cells, strict=True)
    }
    assert {pair: (cells[pair].style, cells[pair].text) for pair in expected} == expected
    # Both orders are the same, and a legend explains each color once.
    assert all(cells[b, a].text == cells[a, b].text for a, b in expected)
    assert [style for style, _ in drawn.legend] == [
        style for style in STYLES if style in {c.style for c in cells.values()}
    ]
    changed = {cell.text for cell in cells.values() if cell.style == "changed"}
    svg = " ".join(each.text for each in ET.fromstring(f"<g>{table_block(drawn).body}</g>").iter("text"))
    for text in (table_to_html(drawn), svg, table_to_markdown(drawn).replace("\\", "")):
        assert all(each in text for each in changed)
    ((page,), _) = read(table_to_html(drawn))
    assert {pair: cell.text for pair, cell in page.cells().items()} == {pair: cell.text for pair, cell in cells.items()}
    assert ("a number changes its value" in table_to_html(drawn)) == ("changed" in dict(drawn.legend))


def test_the_terminal_shows_changed_numbers_without_colors_and_in_their_color(monkeypatch):
    asked = ["table", "--rules", "torch", "--operation", "add", "--types", TYPES]
    plain = CliRunner().invoke(app, asked).stdout
    assert WRAPS in plain
    assert OVERFLOWS in plain
    assert re.search(r"^integer  float  a number changes its value$", plain, re.MULTILINE)
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = CliRunner().invoke(app, asked).stdout
    assert f"\x1b[33m{WRAPS}" in coloured
    refused = CliRunner().invoke(app, ["table", "--rules", "array-api", "--types", "int8,float16"]).stdout
    assert "\x1b[2m-" in refused
    assert "\x1b[31m" not in refused
    assert "\x1b[1;31m" not in refused


def test_json_has_the_numbers_that_change():
    asked = ["table", "--rules", "torch", "--operation", "add", "--types", "int8,1000", "--format", "json"]
    data = json.loads(CliRunner().invoke(app, asked).stdout)
    assert data["table"]["int8"] == {"int8": "int8", "1000": "int8"}
    assert data["changes"] == [
        {"left": "int8", "right": "1000", "numbers": ["1000 wraps to -24"]},
        {"left": "1000", "right": "int8", "numbers": ["1000 wraps to -24"]},
    ]


def test_the_legend_names_every_short_name_of_the_table():
    # i16 and f* are results, not headings.
    drawn = rule_table("jax-x64", types="int8,uint8,int64,uint64").drawing()
    assert dict(drawn.full_names) == {
        "i8": "int8", "u8": "uint8", "i64": "int64", "u64": "uint64", "i16": "int16", "f*": "float* (weak)",
    }  # fmt: skip
