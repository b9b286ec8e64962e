"""The layout and the drawing of Hasse diagrams."""

import itertools
import random
import re
import xml.etree.ElementTree as ET
from functools import cache

import pytest

from slowly import mostly_slow
from supremum.analysis.inferred_lattice import Order, order_of
from supremum.render import hasse_to_dot, hasse_to_svg
from supremum.render.graph_layout import in_layers
from supremum.render.hasse import HEIGHT, Diagram, Node, laid_out
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
    return Diagram("d", nodes, tuple((a, b) for a, above in edges.items() for b in above), **given)


@cache
def _layout(name):
    return laid_out(_diagram(GRAPHS[name]))


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
    assert set(layout.boxes) == set(GRAPHS[name])
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
    assert set(layout.curves) == {(a, b) for a, above in GRAPHS[name].items() for b in above}
    for (lower, upper), curves in layout.curves.items():
        a, b = layout.boxes[lower], layout.boxes[upper]
        assert curves[0][0] == (pytest.approx(a.x + a.width / 2), pytest.approx(a.y))
        assert curves[-1][1] == (pytest.approx(b.x + b.width / 2), pytest.approx(b.y + HEIGHT))
        points = list(_points(curves))
        assert all(start[1] > end[1] for start, end in curves)
        for text, box in layout.boxes.items():
            if text not in (lower, upper):
                through = [
                    (x, y)
                    for x, y in points
                    if box.x - 3 < x < box.x + box.width + 3 and box.y - 1 < y < box.y + HEIGHT + 1
                ]
                assert not through, (lower, upper, text)


@_EACH_GRAPH
def test_each_element_is_in_a_higher_layer_than_all_below_it(name):
    layers = in_layers(GRAPHS[name])
    level = {place: height for height, layer in enumerate(layers.order) for place in layer}
    for (lower, upper), route in layers.routes.items():
        assert [level[place] for place in route] == list(range(level[lower], level[upper] + 1))
        assert level[lower] < level[upper]
    assert sum(map(len, layers.order)) == len(set(itertools.chain(*layers.order))) == len(level)


@pytest.mark.parametrize("name", ORDERS)
def test_the_edges_of_every_rule_set_are_drawn_without_crossings(name):
    assert _layout(name).crossings == 0


def test_the_number_of_crossings_matches_the_drawing():
    for seed in range(4):
        edges = _random_order(seed, 16)
        layers = in_layers(edges)
        row = {place: number for layer in layers.order for number, place in enumerate(layer)}
        crossing = [
            (link, other)
            for link, other in itertools.combinations(layers.links, 2)
            if _gap(layers, link) == _gap(layers, other)
            and (row[link[0]] - row[other[0]]) * (row[link[1]] - row[other[1]]) < 0
        ]
        assert layers.crossings == len(crossing)


def test_two_layers_have_the_fewest_possible_crossings():
    for seed in range(3):
        chance = random.Random(seed)
        edges = {name: tuple(chance.sample("vwxyz", chance.randint(1, 3))) for name in "abcde"}
        links = [(low, up) for low, ups in edges.items() for up in ups]
        least = min(
            sum(
                (a.index(p) - a.index(r)) * (b.index(q) - b.index(s)) < 0
                for (p, q), (r, s) in itertools.combinations(links, 2)
            )
            for a in itertools.permutations("abcde")
            for b in itertools.permutations("vwxyz")
        )
        assert in_layers(edges | dict.fromkeys("vwxyz", ())).crossings == least


def test_swaps_of_neighbours_leave_few_crossings():
    # Without swaps there are 53.
    assert sum(in_layers(_random_order(seed)).crossings for seed in (0, 4)) <= 42


def test_the_lowest_elements_are_just_below_their_upper_neighbours():
    layers = in_layers({"a": ("b",), "b": ("c",), "x": ("c",), "c": ()})
    assert [set(layer) for layer in layers.order] == [{"a"}, {"b", "x"}, {"c"}]


def _gap(layers, link):
    return next(height for height, layer in enumerate(layers.order) if link[0] in layer)


def test_layouts_are_deterministic_and_chains_are_straight():
    edges = GRAPHS["random 3"]
    assert laid_out(_diagram(edges)) == laid_out(_diagram(edges))
    chain = laid_out(_diagram({"a": ("b",), "b": ("c",), "c": ()}))
    assert {box.x for box in chain.boxes.values()} == {0}
    wide = laid_out(_diagram({"a": ("x", "y", "z"), "x": (), "y": (), "z": ()}))
    assert wide.boxes["a"].x == wide.boxes["y"].x
    assert wide.boxes["a"].y > wide.boxes["y"].y


def test_elements_without_edges_are_in_separate_rows():
    names = [f"float8_number{number}" for number in range(20)]
    layout = laid_out(_diagram(dict.fromkeys(names, ())))
    assert layout.apart == 0
    assert len({box.y for box in layout.boxes.values()}) == 10
    assert layout.width <= 330  # it fits on a phone
    mixed = laid_out(_diagram({"a": ("b",), "b": (), "c": ()}))
    assert mixed.apart > mixed.boxes["b"].y + HEIGHT
    assert mixed.boxes["c"].y > mixed.apart
    assert laid_out(_diagram({"a": ("b",), "b": ()})).apart is None


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


def _tokens(dot):
    """The tokens of a DOT text, by https://graphviz.org/doc/info/lang.html; fails at an invalid token."""
    found, place = [], 0
    while place < len(dot):
        if dot[place].isspace():
            place += 1
        elif dot[place] == '"':
            end = place + 1
            while dot[end] != '"':
                end += 2 if dot[end] == "\\" else 1
            found.append(("id", dot[place + 1 : end]))
            place = end + 1
        elif dot.startswith("->", place):
            found.append(("edge", "->"))
            place += 2
        elif dot[place] in "{}[]=,;":
            found.append((dot[place], dot[place]))
            place += 1
        else:
            end = place
            while dot[end].isalnum():
                end += 1
            assert end > place, dot[place:]
            found.append(("id", dot[place:end]))
            place = end
    return found


def test_labels_replace_names_and_are_explained():
    nodes = (Node("uint8", "integer", label="u8"), Node("int16", "integer", label="i16"))
    names = (("u8", "uint8"), ("i16", "int16"))
    root = ET.fromstring(hasse_to_svg(Diagram("d", nodes, (("uint8", "int16"),), full_names=names)))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"u8", "i16", "u8\N{NO-BREAK SPACE}uint8, i16\N{NO-BREAK SPACE}int16"} <= set(texts)
    assert "uint8" not in texts
    assert root.find(f"{SVG}desc").text == "uint8 is below int16."


def test_the_dot_text_is_valid_dot():
    tokens = _tokens(hasse_to_dot(LIT))
    kinds = "".join({"id": "i", "edge": ">"}.get(kind, kind) for kind, _ in tokens)
    attributes = r"(\[i=i(,i=i)*\])"
    assert re.fullmatch(rf"ii\{{(i(>i)?{attributes}?;)*\}}", kinds), kinds
    ids = [text for kind, text in tokens if kind == "id"]
    assert ids[:2] == ["digraph", 'a \\"b\\" <c>']
    assert {"int*", "int8", "bool", "&"} <= set(ids)
    assert kinds.count(">") == 2
    assert "\\nBack\\\\slash & more." in "".join(ids)
    assert kinds.count("[") == 3 + 4 + 1
