"""Pages and pictures of comparisons show the data of the comparisons."""

import re
import xml.etree.ElementTree as ET
from itertools import product

import pytest

from pages import read
from supremum.analysis.comparison import DIFFERENCES, compare, compare_groupings
from supremum.analysis.tables import short_name
from supremum.render import side_by_side_to_html, side_by_side_to_svg
from supremum.render.table import table_block
from supremum.rules import RuleSet
from supremum.rules.names import HOMES

TYPES = ["bool", "uint8", "uint64", "int32", "bfloat16", "float32", "complex64", "float*"]
SVG = "{http://www.w3.org/2000/svg}"


def _shown(decision):
    return "-" if decision.result is None else short_name(decision.result.name)


def _marks(cells):
    return {pair: cell.attributes["data-mark"] for pair, cell in cells.items() if "data-mark" in cell.attributes}


@pytest.mark.one_slow_in(3)
@pytest.mark.one_in(32)
@pytest.mark.parametrize("first", HOMES)
def test_both_tables_mark_the_cells_that_differ(first):
    for second in HOMES:
        compared = compare(first, second, types=TYPES)
        tables, entries = read(side_by_side_to_html(compared.side_by_side()))
        assert [table.caption for table in tables] == [f"result_type under {each}" for each in (first, second)]
        differing = {tuple(map(short_name, pair)): how for pair, how in compared.differing.items()}
        for table, decided in zip(tables, (compared.left, compared.right), strict=True):
            cells = table.cells()
            assert _marks(cells) == differing, (first, second)
            assert {pair: cell.text for pair, cell in cells.items()} == {
                (short_name(a), short_name(b)): _shown(decided.decisions[a, b]) for a, b in product(TYPES, repeat=2)
            }
            for cell in cells.values():
                how = cell.attributes.get("data-mark")
                assert cell.parts["mark"] == (DIFFERENCES[how].symbol if how else "")
                assert cell.parts["unseen"] == (f", {compared.meaning(how)}" if how else "")
        counts = {how: f"{DIFFERENCES[how].symbol} {n} {compared.meaning(how)}" for how, n in compared.counts.items()}
        assert entries == counts
        assert list(entries) == list(compared.data()["counts"])


def test_differing_cells_have_both_explanations_and_others_one():
    compared = compare("jax-x64", "numpy", types=TYPES)
    assert 0 < len(compared.differing) < len(compared.left.decisions)
    left, right = (table.cells() for table in read(side_by_side_to_html(compared.side_by_side()))[0])
    for pair in compared.left.decisions:
        one, other = (str(table.decisions[pair]) for table in (compared.left, compared.right))
        place = short_name(pair[0]), short_name(pair[1])
        hints = [cells[place].parts["hint"] for cells in (left, right)]
        if pair in compared.differing:
            assert hints == [f"{one}\n\n{other}\n\n{compared.meaning(compared.differing[pair])}"] * 2
        else:
            assert hints == [one, other]


def test_pictures_mark_the_same_cells_and_name_every_difference():
    for first, second in [("jax-x64", "numpy"), ("torch", "jax-x64"), ("tf-safe", "tf-rfc-safe"), ("paddle", "paddle")]:
        compared = compare(first, second, types=TYPES)
        root = ET.fromstring(side_by_side_to_svg(compared.side_by_side()))
        marks = [group.get("data-mark") for group in root.iter(f"{SVG}g") if group.get("data-mark")]
        assert sorted(marks) == sorted([*compared.differing.values()] * 2)
        assert len(list(root.iter(f"{SVG}rect"))) == 2 * len(TYPES) ** 2 + 1 + len(_legend(root))
        cells = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
        assert sorted(cell.find(f"{SVG}text").text for cell in cells) == sorted(
            _shown(decision) for table in (compared.left, compared.right) for decision in table.decisions.values()
        )
        texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
        for how, count in compared.counts.items():
            assert f"{DIFFERENCES[how].symbol} {count} {compared.meaning(how)}" in texts
            assert texts.count(DIFFERENCES[how].symbol) == 2 * count
        assert {f"result_type under {first}", f"result_type under {second}"} <= set(texts)
        assert compared.side_by_side().title == root.find(f"{SVG}title").text
        assert compared.summary in root.find(f"{SVG}title").text


def _legend(root):
    return [rect for rect in root.iter(f"{SVG}rect") if rect.get("rx")]


def test_the_requested_number_of_triples_is_listed():
    compared = compare("jax-x64", "numpy", types="int8,uint8,float16,bfloat16")
    triples = compare_groupings("jax-x64", "numpy", compared.left.types)
    assert triples.counts["numpy"] == len(triples.only["numpy"]) > 3
    drawn = compared.side_by_side(triples, shown=3)
    lines = list(triples.written("numpy", triples.counts["numpy"]))
    assert lines[0].startswith("(bf16, ") or lines[0].startswith("(f16, ")
    for write in (side_by_side_to_html, side_by_side_to_svg):
        text = write(drawn)
        assert f"numpy: {len(lines)}, {len(lines)} of them only here" in text
        assert [line for line in lines if line in text] == lines[:3]
        assert "jax-x64: 0, 0 of them only here" in text
        assert "Triples" not in write(compared.side_by_side())


def test_custom_rule_sets_are_drawn():
    mine = RuleSet.from_lattice("mine & <yours>", {"int8": ["int16"], "int16": []})
    drawn = compare(mine, "torch", types="int8,int16,uint8").side_by_side(
        compare_groupings(mine, "torch", ["int8", "int16", "uint8"])
    )
    (left, right), entries = read(side_by_side_to_html(drawn))
    assert (left.caption, right.caption) == ("result_type under mine & <yours>", "result_type under torch")
    assert entries == {"accepted": "○ 5 refused by mine & <yours>"}
    assert "○ 5 refused by mine & <yours>" in [
        text.text for text in ET.fromstring(side_by_side_to_svg(drawn)).iter(f"{SVG}text")
    ]


@pytest.mark.slow
def test_a_picture_puts_large_tables_below_each_other():
    def widths(types):
        """Return the width of the picture and of both tables."""
        drawn = compare("torch", "numpy", types=types).side_by_side()
        tables = (table_block(table).width for table in (drawn.left, drawn.right))
        return float(ET.fromstring(side_by_side_to_svg(drawn)).get("width")), *tables

    picture, left, right = widths("standard")
    assert picture > left + right
    picture, left, right = widths("all")
    assert max(left, right) < picture < left + right


def test_pages_and_pictures_fetch_nothing():
    drawn = compare("jax-x64", "torch").side_by_side()
    for write in (side_by_side_to_html, side_by_side_to_svg):
        text = write(drawn).replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not re.search(r"https?:|url\(|@import|\bsrc=|\bhref=\"(?!data:)", text)
