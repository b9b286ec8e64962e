"""Pictures of rule sets."""

import itertools
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from browser import open_browser
from supremum import RuleSet
from supremum.analysis.diagrams import lattice_dot, lattice_svg
from supremum.analysis.inferred_lattice import NoLattice, order_of
from supremum.analysis.tables import ALL_TYPES, STANDARD_TYPES, rule_table, short_name
from supremum.errors import ArgumentError, UnknownNameError
from supremum.operands import WEAK_NAMES
from supremum.rules import rule_names

SVG = "{http://www.w3.org/2000/svg}"


_NAMES = {short_name(name): name for name in ALL_TYPES}


def _labels(svg):
    """The classes of every labelled box, by the full name of its type."""
    return {
        _NAMES[group.find(f"{SVG}text").text]: set(group.get("class").split())
        for group in ET.fromstring(svg).iter(f"{SVG}g")
        if group.find(f"{SVG}rect") is not None and group.find(f"{SVG}text") is not None
    }


def _caption(svg):
    return ET.fromstring(svg).find(f"{SVG}desc").text


def _lit(svg):
    return {name for name, classes in _labels(svg).items() if "lit" in classes}


def test_every_type_is_drawn_in_the_colour_of_its_kind_and_weak_kinds_are_dashed():
    svg = lattice_svg("jax-x64")
    labels = _labels(svg)
    assert set(labels) == set(order_of("jax-x64").lattice.nodes)
    assert labels["bool"] == {"bool"}
    assert labels["uint4"] == {"integer"}
    assert labels["float8_e4m3b11fnuz"] == labels["bfloat16"] == {"float"}
    assert {name for name, classes in labels.items() if "dashed" in classes} == set(WEAK_NAMES)
    texts = ["".join(each.itertext()) for each in ET.fromstring(svg).iter(f"{SVG}text")]
    assert {"bool", "integer", "float", "complex", "weak kind"} < set(texts)
    assert "asked about" not in texts
    names = " ".join(texts).replace("\N{NO-BREAK SPACE}", " ")
    assert all(f"{short} {name}" in names for short, name in _NAMES.items() if short != name and name in labels)
    edges = ET.fromstring(svg).iter(f"{SVG}path")
    assert len(list(edges)) == sum(map(len, order_of("jax-x64").lattice.edges.values())) > 35


@pytest.mark.parametrize(
    ("rules", "types", "path", "caption", "lit", "lines"),
    [
        (
            "jax-x64", "standard", ("int8", "float16"), "int8 and float16 promote to float16.",
            {"int8", "int16", "int32", "int64", "float*", "float16"}, 5,
        ),
        (
            "jax-x64", "int8", "uint8, int8, bfloat16", "uint8, int8 and bfloat16 promote to bfloat16.",
            {"uint8", "int8", "int16", "bfloat16"}, 3,
        ),
        ("jax-x32", "standard", ("int64", "uint64"), "int64 and uint64 promote to int32.", {"uint32", "int32"}, 1),
        (
            "jax-x64", "all", ("float8_e5m2", "float16"),
            "float8_e5m2 and float16 do not promote: the lattice has no upper bound of float8_e5m2 and float16.",
            {"float8_e5m2", "float16"}, 0,
        ),
        ("jax-x64", "standard", (), "Two types promote", set(), 0),
    ],
)  # fmt: skip
def test_a_path_highlights_the_lines_to_the_common_type(rules, types, path, caption, lit, lines):
    svg = lattice_svg(rules, types=types, path=path)
    assert _caption(svg).startswith(caption)
    assert _lit(svg) == lit
    assert svg.count('<g class="lit"><path') == lines
    assert ("the way to the common type" in svg) == bool(lines)
    assert ("asked about" in svg) == (not lines and bool(lit))


def test_a_path_may_have_a_type_twice():
    assert _lit(lattice_svg("jax-x64", path=("int*", "int*", "float32"))) >= {"int*", "float32"}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rules", ["jax-x64", "tf-all"])
def test_every_pair_is_highlighted_up_to_its_join(rules):
    decided = rule_table(rules).decisions
    for a, b in itertools.combinations(STANDARD_TYPES[::4], 2):
        svg, met = lattice_svg(rules, path=(a, b)), decided[a, b].result.name
        assert f"{a} and {b} promote to {met}." in svg
        assert {a, b, met} <= _lit(svg)


def test_a_rule_set_that_is_not_a_lattice_raises_with_the_reason():
    names = [name for name in rule_names() if isinstance(order_of(name, "standard"), NoLattice)]
    assert len(names) > 10
    for rules, draw in itertools.product(names, (lattice_svg, lattice_dot)):
        with pytest.raises(ArgumentError, match=rf"^{rules} is not a lattice: \(.* places where no order agrees with"):
            draw(rules, types="standard")
    with pytest.raises(ArgumentError) as raised:
        lattice_svg("numpy", types=["int8", "uint8", "float16"])
    assert str(raised.value) == (
        "numpy is not a lattice: (int8, uint8), float16 gives float32, but int8, (uint8, float16) gives float16; "
        "one of 4 places where no order agrees with the rules; print its table instead, with supremum table or "
        "rule_table."
    )


@pytest.mark.parametrize(
    ("rules", "types", "sentence", "expected"),
    [
        ("jax-x64", "all", "the rules refuse", True),
        ("tf-all", "standard", "the rules refuse", False),
        ("array-api", "bfloat16,float16,float32", "Refused even with themselves: bfloat16, float16.", True),
        ("jax-x64", "standard", "Refused even with themselves", False),
        ("jax-x32", "standard", "Replaced by others: uint64 as uint32, int64 as int32", True),
        ("tf-rfc-none", "standard", "Without int*, float*, complex*, which fit no order", True),
        ("tf-off", "standard", "Each of these promotes only with itself:", True),
        ("tf-off", "standard", "Two types promote", False),
        ("jax-x64", "all", "Each of these", False),
    ],
)
def test_the_picture_says_what_is_not_in_order(rules, types, sentence, expected):
    root = ET.fromstring(lattice_svg(rules, types=types))
    texts = [each.text for each in (*root.iter(f"{SVG}desc"), *root.iter(f"{SVG}text"))]
    assert any(sentence in text for text in texts if text) == expected


def test_names_with_special_characters_are_escaped():
    mine = RuleSet.from_lattice('<my> "rules" & more', {"int8": ["int16"], "float16": []})
    assert ET.fromstring(lattice_svg(mine)).find(f"{SVG}title").text == '<my> "rules" & more: 3 types in order'
    assert lattice_dot(mine).startswith('digraph "<my> \\"rules\\" & more: 3 types in order" {')


def test_wrong_paths_raise():
    with pytest.raises(ArgumentError, match="must have at least two types, got only int8"):
        lattice_svg("jax-x64", path="int8")
    with pytest.raises(ArgumentError, match="array-api refuses bfloat16 even with itself, so there is no path"):
        lattice_svg("array-api", path="int8,bfloat16")
    with pytest.raises(ArgumentError, match=r"^The order of tf-off does not contain int\*\. Without"):
        lattice_svg("tf-off", path=("int*", "int8"))
    with pytest.raises(UnknownNameError, match="did you mean 'float32'"):
        lattice_svg("jax-x64", path=("flaot32", "int8"))


def test_pictures_are_deterministic_and_svg_and_dot_need_no_matplotlib():
    assert lattice_svg("jax-x64") == lattice_svg("jax-x64")
    other = (
        "import sys; from supremum.analysis.diagrams import lattice_svg, lattice_dot;"
        "print(lattice_svg('jax-strict', path='int8,int*'), end='');"
        "lattice_dot('jax');"
        "assert not {'matplotlib', 'jax', 'torch', 'typer'} & set(sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=True)
    assert out.stdout == lattice_svg("jax-strict", path="int8,int*")


_MEASURED = """() => {
  const frame = document.documentElement.getBoundingClientRect();
  return [...document.querySelectorAll('text')].map(text => {
    const box = text.parentElement.querySelector(':scope > .box');
    const r = (e) => { const q = e.getBoundingClientRect(); return [q.left, q.top, q.right, q.bottom]; };
    return [text.textContent, r(text), box ? r(box) : [0, 0, frame.right, frame.bottom]];
  });
}"""


@pytest.mark.slow
def test_texts_fit_in_a_browser_and_dark_mode_is_dark(tmp_path):
    with open_browser() as browser:
        for scheme, page_colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(22, 24, 29)")):
            page = browser.new_page(color_scheme=scheme)
            for rules in ("jax-x64", "jax-strict", "tf-off", "tf-all", "array-api"):
                path = () if rules == "array-api" else ("int8", "float16")
                file = tmp_path / f"{rules}.svg"
                file.write_text(lattice_svg(rules, path=path))
                page.goto(file.as_uri())
                measured = page.evaluate(_MEASURED)
                assert len(measured) > 15
                for text, (left, top, right, bottom), (x, y, end, below) in measured:
                    assert x + 1 < left < right < end - 1, (rules, text)
                    assert y - 1 < top < bottom < below + 1, (rules, text)
                fill = "getComputedStyle(document.querySelector('.page')).fill"
                assert page.evaluate(fill) == page_colour
