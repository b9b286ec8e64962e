"""Distances between rule sets."""

from itertools import product

import pytest

from supremum.analysis.comparison import DIFFERENCES, compare
from supremum.analysis.distance import distances
from supremum.errors import ArgumentError, UnknownNameError
from supremum.render.table import step
from supremum.rules import RuleSet, get_rules
from supremum.rules.names import HOMES

TYPES = ["bool", "uint8", "uint64", "int32", "bfloat16", "float16", "float32", "complex64", "int*", "float*"]
MINE = RuleSet.from_lattice("mine", {"int8": ["int16"], "int16": []})


@pytest.fixture(scope="module")
def standard():
    return distances()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("operation", [None, "divide"])
def test_distances_agree_with_comparisons(operation):
    found = distances(operation, TYPES)
    classes = set()
    for a, b in product(found.names, repeat=2):
        compared = compare(a, b, operation, TYPES)
        assert found.counts(a, b) == compared.counts, (a, b)
        assert found.count(a, b) == len(compared.differing)
        classes |= set(compared.counts)
    # Only numbers give "value". PyArrow gives int64 for uint64 with a Python int, but divides integers like no other.
    assert classes == set(DIFFERENCES) - ({"value", "other"} if operation else {"value"})
    assert (found.operation, found.cells) == (operation or "result_type", 100)


def test_the_matrix_is_symmetric_with_mirrored_differences(standard):
    mirrored = {"wider": "narrower", "narrower": "wider", "refused": "accepted", "accepted": "refused"}
    for a, b in product(standard.names, repeat=2):
        there, back = standard.counts(a, b), standard.counts(b, a)
        assert there == {mirrored.get(how, how): count for how, count in back.items()}
        assert standard.count(a, b) == standard.count(b, a)
        assert (a == b) <= (standard.count(a, b) == 0)
    assert standard.count("jax-x64", "numpy") == 44
    assert standard.counts("jax-x64", "numpy") == {"wider": 30, "refused": 14}


def test_similar_rule_sets_are_neighbours(standard):
    assert sorted(standard.names) == sorted(HOMES)
    places = {name: place for place, name in enumerate(standard.names)}
    for a, b in [
        ("keras", "jax-x32"),
        ("numpy", "numpy-legacy"),
        ("tf-off", "tf-rfc-none"),
        ("tf-safe", "tf-rfc-safe"),
    ]:
        assert abs(places[a] - places[b]) == 1, (a, b)
    assert distances().names == standard.names


def test_data_and_drawing_agree(standard):
    data, drawn = standard.data(), standard.drawing()
    assert data["rules"] == list(drawn.columns) == [label for label, _ in drawn.rows] == list(standard.names)
    assert len(data["types"]) ** 2 == data["cells"]
    largest = max(max(row.values()) for row in data["differing"].values())
    for a, cells in drawn.rows:
        for b, cell in zip(drawn.columns, cells, strict=True):
            assert int(cell.text) == data["differing"][a][b] == sum(data["counts"][a][b].values())
            assert cell.style == step(int(cell.text), largest)
            meanings = [line.split(" ", 2)[1:] for line in cell.hint.splitlines()[1:]]
            assert [int(count) for count, _ in meanings] == list(data["counts"][a][b].values())
    hint = drawn.rows[standard.names.index("jax-x64")][1][standard.names.index("numpy")].hint
    assert hint == "44 of 324 cells differ between jax-x64 and numpy\n▲ 30 wider in numpy\n✕ 14 refused by numpy"


def test_custom_rule_sets_are_compared():
    found = distances(types="int8,int16,int32", rules=[MINE, "jax-x64", get_rules("jax-x64"), "torch"])
    assert sorted(found.names) == ["jax-x64", "mine", "torch"]
    assert (
        found.counts("jax-x64", "mine") == compare("jax-x64", MINE, types="int8,int16,int32").counts == {"refused": 5}
    )
    marks = compare("jax-x64", MINE, types="int8,int16,int32").side_by_side().left.marks
    assert {mark.meaning: count for mark, count in marks.items()} == {"refused by mine": 5}


def test_formats_of_the_same_width_and_kind_have_the_difference_other():
    halves = [RuleSet.from_lattice(half, {"int8": [half], "uint8": [half]}) for half in ("float16", "bfloat16")]
    found = distances(rules=halves, types="int8,uint8")
    assert found.counts("float16", "bfloat16") == found.counts("bfloat16", "float16") == {"other": 2}


def test_a_single_rule_set_has_a_matrix():
    found = distances(rules=[MINE], types="int8,int16")
    assert (found.names, found.count("mine", "mine"), found.drawing().rows[0][1][0].style) == (("mine",), 0, "step0")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: distances(rules=["numpyy"]), UnknownNameError, "did you mean 'numpy'"),
        (lambda: distances(rules=[]), ArgumentError, "rules must not be empty"),
        (lambda: distances("sin"), UnknownNameError, "unknown operation of two operands 'sin'"),
        (
            lambda: distances(rules=[MINE, RuleSet.from_lattice("mine", {"int8": []})]),
            ArgumentError,
            "must have different names, got 'mine' twice",
        ),
        (
            lambda: compare(MINE, RuleSet.from_lattice("mine", {"int8": []})),
            ArgumentError,
            "must have different names, got 'mine' twice",
        ),
        (lambda: distances(rules=[MINE], types="int8").count("mine", "minee"), UnknownNameError, "did you mean 'mine'"),
    ],
)
def test_wrong_arguments_raise(call, error, message):
    with pytest.raises(error, match=message):
        call()
