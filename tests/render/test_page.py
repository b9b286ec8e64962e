"""HTML pages of tables."""

import re

import pytest

from pages import read
from supremum.render import Cell, Mark, Table
from supremum.render.svg import PALETTE, Drawing, picture
from supremum.render.table import table_to_html

_NOTHING = Drawing(0, 0, "")
ODD = Mark("odd", "!", "odd & even")
TABLE = Table(
    "a < b & c",
    ("x", "y*"),
    (
        ("r", (Cell("1", "integer", "why <so>"), Cell("<2>", "float", "why not", ODD))),
        ("s", (Cell("-", "refused"),) * 2),
    ),
    (("integer", "whole"),),
    (("x", 'the "x"'),),
)


def test_a_page_has_scopes_a_caption_and_escaped_texts():
    page = table_to_html(TABLE)
    (table,), entries = read(page)
    assert (table.caption, table.columns, list(table.rows)) == ("a < b & c", ["x", "y*"], ["r", "s"])
    assert [cell.text for cells in table.rows.values() for cell in cells] == ["1", "<2>", "-", "-"]
    assert entries == {"odd": "! 1 odd & even"}
    assert '<html lang="en">' in page
    assert '<abbr title="the &quot;x&quot;">x</abbr>' in page
    assert "<b>x</b> the &quot;x&quot;" in page
    assert page.count("<h1>") == 1


def test_tab_reaches_marked_cells_and_arrow_keys_all_cells_with_explanations():
    (table,), _ = read(table_to_html(TABLE))
    stops = [[cell.attributes.get("tabindex") for cell in cells] for cells in table.rows.values()]
    assert stops == [["-1", "0"], [None, None]]
    plain = Table("t", ("x", "y"), (("r", (Cell("0", ""), Cell("1", "", "so"))), ("s", (Cell("2", "", "and so"),) * 2)))
    (table,), entries = read(table_to_html(plain))
    stops = [[cell.attributes.get("tabindex") for cell in cells] for cells in table.rows.values()]
    assert stops == [[None, "0"], ["-1", "-1"]]
    assert entries == {}


def test_a_table_without_explanations_has_no_help():
    assert "explanation" in table_to_html(TABLE).split("<script>")[0]
    bare = Table("t", ("x",), (("r", (Cell("0", ""),)),))
    assert 'class="help"' not in table_to_html(bare)
    assert "<ul" not in table_to_html(bare)


def _luminance(colour):
    digits = colour.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one, other):
    """The contrast ratio of WCAG 2.2."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("style", PALETTE)
def test_text_has_enough_contrast_on_every_colour(style):
    page = table_to_html(TABLE)
    for place, background in enumerate(PALETTE[style]):
        for drawn in (page, picture("t", content=_NOTHING)):
            text = re.findall("--text: (#[0-9a-f]+)", drawn)[place]
            assert _contrast(text, background) >= 7
        assert f".{style} {{ background: {background}; }}" in page


def test_lines_and_highlights_of_pictures_have_enough_contrast():
    for theme in re.findall(r"\.supremum \{ (--page.*?)\}", picture("t", content=_NOTHING)):
        colours = dict(re.findall(r"--(\w+): (#\w+);", theme))
        for name, least in {"text": 7, "line": 3, "lit": 4.5}.items():
            assert _contrast(colours[name], colours["page"]) >= least


def test_names_have_enough_contrast_on_the_boxes_of_a_picture():
    for theme in picture("t", content=_NOTHING).split("<style>")[1].split("@media"):
        fills = re.findall(r"\.box \{ fill: (#\w+); \}", theme)
        assert len(fills) == len(PALETTE)
        (text,) = set(re.findall(r"--text: (#\w+);", theme))
        assert min(_contrast(text, fill) for fill in fills) >= 7
