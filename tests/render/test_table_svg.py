"""SVGs of tables."""

import itertools
import re
import xml.etree.ElementTree as ET
from functools import cache

import pytest

from supremum.analysis.tables import rule_table
from supremum.render import Cell, Mark, Table
from supremum.render.svg import PALETTE, picture
from supremum.render.table import table_block

SVG = "{http://www.w3.org/2000/svg}"
SMALL = Table(
    "a < b & c",
    ("x", "a long one"),
    (
        ("r*", (Cell("1", "integer", "why <so>"), Cell("22", "float", mark=Mark("odd", "!", "odd & even")))),
        ("s", (Cell("-", "refused"),) * 2),
    ),
    (("integer", "whole"), ("refused", "no & never")),
)


def _drawn(table, caption=()):
    return picture(table.title, table_block(table), caption, table.legend)


@cache
def _all_types():
    return rule_table("numpy", types="all").drawing()


def _texts(root):
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


def test_a_table_is_a_well_formed_svg_with_all_texts():
    root = ET.fromstring(_drawn(SMALL, ["A sentence."]))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == "a < b & c"
    assert root.find(f"{SVG}desc").text == "A sentence."
    above = ["a < b & c", "A sentence.", "whole", "no & never"]
    assert _texts(root) == [*above, "x", "a long one", "r*", "1", "s", "-", "-", "22", "!"]
    assert [each.text for each in root.iter(f"{SVG}title")] == ["a < b & c", "why <so>"]
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"


def test_cells_have_their_style_classes_and_marked_cells_come_last():
    groups = [each.get("class") for each in ET.fromstring(_drawn(SMALL)).iter(f"{SVG}g") if each.get("class")]
    assert groups == ["integer", "refused", "integer", "refused", "refused", "float marked"]


def test_cells_do_not_overlap_and_fit_their_texts():
    decided = _all_types()
    block = table_block(decided)
    root = ET.fromstring(f'<svg xmlns="{SVG[1:-1]}">{block.body}</svg>')
    boxes = [[float(each.get(name)) for name in ("x", "y", "width", "height")] for each in root.iter(f"{SVG}rect")]
    assert len(boxes) == len(decided.columns) ** 2
    assert len({(x, y) for x, y, _, _ in boxes}) == len(boxes)
    for x, y, width, height in boxes:
        assert x + width <= block.width + 0.1
        assert y + height <= block.height + 0.1
        right = [other for other, top, _, _ in boxes if top == y and other > x]
        assert not right or min(right) >= x + width - 0.2
    for group in root.iter(f"{SVG}g"):
        box, texts = group.find(f"{SVG}rect"), group.findall(f"{SVG}text")
        for text in texts:
            assert 12 * 0.6 * len(text.text) + 2 * 5 <= float(box.get("width"))
        top, height = float(box.get("y")), float(box.get("height"))
        lines = [float(text.get("y")) for text in texts]
        assert all(after - before >= 14 for before, after in itertools.pairwise(lines))
        assert top + 12 <= lines[0] <= lines[-1] <= top + height - 5


def test_long_names_and_sentences_are_broken_and_numbers_are_not():
    cells = (Cell("f8_e4m3b11fnuz", "float"), Cell("i8, 1000 wraps to -24", "changed"), Cell("16777217", "integer"))
    root = ET.fromstring(_drawn(Table("t", ("f8_e4m3b11fnuz", "b", "c"), (("a_long_row_label", cells),))))
    broken = ["f8_", "e4m3", "b11", "fnuz"]
    assert _texts(root)[1:] == [*broken, "b", "c", "a_long_row_label", *broken, "i8, 1000 wraps", "to -24", "16777217"]


def test_the_picture_of_all_types_is_as_narrow_as_40_columns_of_short_names():
    root = ET.fromstring(_drawn(_all_types()))
    # At 12 px, the four letters of c128 and the padding take 39 px.
    assert float(root.get("width")) < 40 * 39 + 150


@pytest.mark.parametrize("style", PALETTE)
def test_the_svg_has_a_light_and_a_dark_colour_for_every_style(style):
    drawn = _drawn(SMALL)
    light, dark = drawn.split("@media (prefers-color-scheme: dark)")
    assert f".supremum .{style} .box {{ fill: {PALETTE[style][0]}; }}" in light
    assert f".supremum .{style} .box {{ fill: {PALETTE[style][1]}; }}" in dark
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(", drawn)


def test_long_captions_and_legends_are_wrapped():
    entries = tuple((style, "a meaning of some length") for style in PALETTE)
    drawn = ET.fromstring(_drawn(Table("t", ("x",), (("y", (Cell("z", "float"),)),), entries), ["word " * 60]))
    width = float(drawn.get("width"))
    texts = [each for each in drawn.iter(f"{SVG}text") if each.get("class") is None]
    assert len(texts) > len(entries) + 3
    for each in texts:
        assert 20 + float(each.get("x", 0)) + 0.58 * 13 * len(each.text) <= width
    tops = [float(each.get("y")) for each in drawn.iter(f"{SVG}text") if each.text == "a meaning of some length"]
    assert len(set(tops)) > 1
