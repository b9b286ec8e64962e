"""The layout and the drawing of Hasse diagrams."""

import itertools
import math
import random
import re
import xml.etree.ElementTree as ET
from functools import cache

import pytest

from slowly import mostly_slow
from supremum.analysis.inferred_lattice import Order, order_of
from supremum.render import hasse_to_dot, hasse_to_svg
from supremum.render.graph_layout import HEIGHT, laid_out
from supremum.render.hasse import Diagram, Node
from supremum.render.svg import text_width
from supremum.rules import rule_names

SVG = "{http://www.w3.org/2000/svg}"
ORDERS = {name: order.lattice.edges for name in rule_names() if isinstance(order := order_of(name), Order)}


def _random_order(seed, count=30):
    """Edges from lower to higher numbers, labels of all lengths."""
    chance = random.Random(seed)
    names = [f"{'n' * chance.randint(1, 16)}{number}" for number in range(count)]
    return {
        name: tuple(other for other in names[place + 1 :] if chance.random() < 2 / count)
        for place, name in enumerate(names)
    }


GRAPHS = ORDERS | {f"random {seed}": _random_order(seed) for seed in range(12)}
_FAST = (*ORDERS, *(f"random {seed}" for seed in range(4)))
_EACH_GRAPH = pytest.mark.parametrize("name", mostly_slow(GRAPHS, *_FAST))


def _diagram(edges, **given):
    nodes = tuple(Node(name, "integer") for name in edges)
    return Diagram("d", nodes, _edges(edges), **given)


def _edges(above):
    return tuple((lower, upper) for lower, uppers in above.items() for upper in uppers)


@cache
def _layout(name):
    above = GRAPHS[name]
    joined = {each for edge in _edges(above) for each in edge}
    widths = {each: math.ceil(text_width(each)) + 18 for each in above if each in joined}
    return laid_out({each: above[each] for each in widths}, widths)


def _small_layout(**above):
    return laid_out(above, dict.fromkeys(above, 40.0))


def _points(curves, steps=40):
    """Points on a drawn edge: Bezier curves with vertical ends, and the vertical lines between them."""
    for (x, y), (end, there) in curves:
        middle = (y + there) / 2
        for step in range(steps + 1):
            t = step / steps
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            yield tuple(
                sum(w * v for w, v in zip(weights, values, strict=True))
                for values in ((x, x, end, end), (y, middle, middle, there))
            )
    for (_, (x, y)), ((end, there), _) in itertools.pairwise(curves):
        assert x == end
        yield from ((x, y + (there - y) * step / steps) for step in range(steps + 1))


@_EACH_GRAPH
def test_labels_do_not_overlap_and_lie_in_the_picture(name):
    layout = _layout(name)
    assert set(layout.boxes) == {each for edge in _edges(GRAPHS[name]) for each in edge}
    for box in layout.boxes.values():
        assert 0 <= box.x <= box.x + box.width <= layout.width + 0.01
        assert 0 <= box.y <= box.y + HEIGHT <= layout.height + 0.01
    for a, b in itertools.combinations(layout.boxes.values(), 2):
        apart = a.x + a.width + 6 <= b.x or b.x + b.width + 6 <= a.x or abs(a.y - b.y) >= HEIGHT + 6
        assert apart, (a, b)
    for text, box in layout.boxes.items():
        assert box.width >= 12 * 0.6 * len(text) + 10


@_EACH_GRAPH
def test_edges_go_up_and_pass_no_other_label(name):
    layout = _layout(name)
    assert set(layout.curves) == set(_edges(GRAPHS[name]))
    between = {start[1] - end[1] for curves in layout.curves.values() for start, end in curves}
    assert len(between) == bool(layout.curves)  # all rows are equally far from each other
    for (lower, upper), curves in layout.curves.items():
        a, b = layout.boxes[lower], layout.boxes[upper]
        assert curves[0][0] == (pytest.approx(a.x + a.width / 2), pytest.approx(a.y))
        assert curves[-1][1] == (pytest.approx(b.x + b.width / 2), pytest.approx(b.y + HEIGHT))
        points = list(_points(curves))
        assert all(start[1] > end[1] for start, end in curves)
        assert all(end[1] - HEIGHT == start[1] for (_, end), (start, _) in itertools.pairwise(curves))
        assert len(curves) == (a.y - b.y) / (max(between) + HEIGHT) > 0  # one for each row
        for text, box in layout.boxes.items():
            if text not in (lower, upper):
                through = [
                    (x, y)
                    for x, y in points
                    if box.x - 3 < x < box.x + box.width + 3 and box.y - 1 < y < box.y + HEIGHT + 1
                ]
                assert not through, (lower, upper, text)


def _crossings(curves):
    """The number of pairs of curves between the same two rows whose ends are in opposite orders."""
    return sum(
        a[0][1] == b[0][1] and (a[0][0] - b[0][0]) * (a[1][0] - b[1][0]) < 0
        for a, b in itertools.combinations(itertools.chain(*curves.values()), 2)
    )


@pytest.mark.parametrize("name", ORDERS)
def test_the_edges_of_every_rule_set_are_drawn_without_crossings(name):
    assert _crossings(_layout(name).curves) == 0


def test_crossings_are_counted():
    assert _crossings({"a": [((0, 10), (0, 0))], "b": [((5, 10), (5, 0))]}) == 0
    assert _crossings({"a": [((0, 10), (5, 0))], "b": [((5, 10), (0, 0))]}) == 1


def test_places_move_to_the_median_of_their_neighbours():
    # In the order of the names, the edges would cross.
    layout = _small_layout(a="y", b="x", x="", y="")
    assert _crossings(layout.curves) == 0
    assert (layout.boxes["y"].x, layout.boxes["x"].x) == (layout.boxes["a"].x, layout.boxes["b"].x)


def test_the_lowest_elements_are_just_below_their_upper_neighbours():
    tops = {name: box.y for name, box in _small_layout(a="b", b="c", x="c", c="").boxes.items()}
    assert tops["a"] > tops["b"] == tops["x"] > tops["c"] == 0


def test_layouts_are_deterministic_and_chains_are_straight():
    assert _layout.__wrapped__("random 3") == _layout("random 3")
    assert {box.x for box in _small_layout(a="b", b="c", c="").boxes.values()} == {0}
    wide = _small_layout(a="xyz", x="", y="", z="")
    assert wide.boxes["a"].x == wide.boxes["y"].x
    assert wide.boxes["a"].y > wide.boxes["y"].y


def _drawn_boxes(svg):
    """The left and top edge and the width of each label, and the top of the heading above elements without edges."""
    boxes, headings = {}, []

    def walk(element, x, y):
        moved = re.fullmatch(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
        x, y = (x + float(moved[1]), y + float(moved[2])) if moved else (x, y)
        box, text = element.find(f"{SVG}rect"), element.find(f"{SVG}text")
        if box is not None and text is not None:
            boxes[text.text] = (x + float(box.get("x")), y + float(box.get("y")), float(box.get("width")))
        if element.tag == f"{SVG}text" and element.text == "Alone:":
            headings.append(y)
        for child in element:
            walk(child, x, y)

    root = ET.fromstring(svg)
    for group in root.findall(f"{SVG}g"):
        walk(group, 0, 0)
    return boxes, headings


def test_elements_without_edges_are_in_separate_rows():
    names = [f"float8_number{number}" for number in range(20)]
    svg = hasse_to_svg(_diagram(dict.fromkeys(names, ()), apart="Alone:"))
    boxes, (heading,) = _drawn_boxes(svg)
    assert set(boxes) == set(names)
    assert len({y for _, y, _ in boxes.values()}) == 10
    assert min(y for _, y, _ in boxes.values()) > heading
    assert float(ET.fromstring(svg).get("width")) <= 370  # it fits on a phone
    for (x, y, width), (other_x, other_y, other) in itertools.combinations(boxes.values(), 2):
        assert x + width + 6 <= other_x or other_x + other + 6 <= x or abs(y - other_y) >= HEIGHT + 6
    boxes, (heading,) = _drawn_boxes(hasse_to_svg(_diagram({"a": ("b",), "b": (), "c": ()}, apart="Alone:")))
    assert boxes["c"][1] > heading > boxes["a"][1] + HEIGHT
    assert "Alone:" not in hasse_to_svg(_diagram({"a": ("b",), "b": ()}, apart="Alone:"))


LIT = Diagram(
    'a "b" <c>',
    (Node("int*", "integer", True, True), Node("int8", "integer", lit=True), Node("bool", "bool"), Node("&", "float")),
    (("int*", "int8"), ("bool", "int8")),
    frozenset({("int*", "int8")}),
    ("Back\\slash & more.",),
    (("integer", "whole"), ("dashed plain", "weak")),
    "Alone:",
)  # fmt: skip


def test_the_picture_has_every_label_edge_and_mark():
    root = ET.fromstring(hasse_to_svg(LIT))
    assert root.find(f"{SVG}title").text == 'a "b" <c>'
    assert root.find(f"{SVG}desc").text == "Back\\slash & more. int* is below int8. bool is below int8."
    labels = {
        group.find(f"{SVG}text").text: group.get("class")
        for group in root.iter(f"{SVG}g")
        if group.find(f"{SVG}text") is not None and group.find(f"{SVG}rect") is not None
    }
    assert labels == {"int*": "integer dashed lit", "int8": "integer lit", "bool": "bool", "&": "float"}
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert {"Alone:", "whole", "weak", 'a "b" <c>'} <= set(texts)
    lit = [group for group in root.iter(f"{SVG}g") if group.get("class") == "lit"]
    assert len(lit) == len(lit[0].findall(f"{SVG}path")) == 1
    assert len(list(root.iter(f"{SVG}path"))) == 2


# The tokens of a DOT text, by https://graphviz.org/doc/info/lang.html.
_TOKEN = re.compile(r'"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<id>[^\W_]+)|->|[{}\[\]=,;]')


def test_labels_replace_names_and_are_explained():
    nodes = (Node("uint8", "integer", label="u8"), Node("int16", "integer", label="i16"))
    names = (("u8", "uint8"), ("i16", "int16"))
    root = ET.fromstring(hasse_to_svg(Diagram("d", nodes, (("uint8", "int16"),), full_names=names)))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"u8", "i16", "u8\N{NO-BREAK SPACE}uint8, i16\N{NO-BREAK SPACE}int16"} <= set(texts)
    assert "uint8" not in texts
    assert root.find(f"{SVG}desc").text == "uint8 is below int16."


def test_the_dot_text_is_valid_dot():
    dot = hasse_to_dot(LIT)
    tokens = list(_TOKEN.finditer(dot))
    assert "".join(dot.split()) == "".join("".join(token[0].split()) for token in tokens)
    ids = [token["quoted"] or token["id"] for token in tokens if token.lastgroup]
    kinds = "".join("i" if token.lastgroup else ">" if token[0] == "->" else token[0] for token in tokens)
    attributes = r"(\[i=i(,i=i)*\])"
    assert re.fullmatch(rf"ii\{{(i(>i)?{attributes}?;)*\}}", kinds), kinds
    assert ids[:2] == ["digraph", 'a \\"b\\" <c>']
    assert {"int*", "int8", "bool", "&"} <= set(ids)
    assert kinds.count(">") == 2
    assert "\\nBack\\\\slash & more." in "".join(ids)
    assert kinds.count("[") == 3 + 4 + 1
