"""Comparisons of two rule sets."""

import itertools
import json
import pathlib

import pytest
from typer.testing import CliRunner

from supremum.analysis.comparison import DIFFERENCES, compare, compare_groupings, groupings
from supremum.analysis.tables import STANDARD_TYPES, rule_table, type_names
from supremum.cli.app import app
from supremum.errors import ArgumentError, UnknownDtypeError, UnknownNameError
from supremum.rules import RuleSet
from supremum.rules.names import HOMES

MINE = RuleSet.from_lattice("mine", {"int8": ["int16"], "int16": []})
PAGE = json.loads((pathlib.Path(__file__).parents[1] / "conformance/oracles/jax-type-promotion-rst.json").read_text())


def test_numpy_differs_from_jax_in_the_95_cells_of_jep_9407():
    """JEP 9407 compares with NumPy before version 2, where `int` was int64 and bfloat16 was unknown."""
    compared = compare("jax-x64", "numpy", weak_as_64_bit=True)
    unknown = {pair for pair in compared.left.decisions if "bfloat16" in pair}
    assert {f"{a},{b}" for a, b in unknown.union(compared.differing)} == set(PAGE["marked"])
    assert len(PAGE["marked"]) == 95


def test_a_rule_set_does_not_differ_from_itself_nor_depend_on_weakness():
    assert compare("torch", "torch", "divide", "all").differing == {}
    assert ("int*", "int*") not in compare("jax-x64", "numpy").differing  # int* held as int64, and int64


def test_differences_are_classified():
    types = "int8,uint8,int32,float16,float32,float64,complex64"
    assert compare("jax-x64", "numpy", types=types).counts == {"wider": 6}
    assert compare("numpy", "jax-x64", types=types).counts == {"narrower": 6}
    assert compare("jax-x64", "tf-rfc-none", types="int8,int16").counts == {"refused": 2}
    assert compare("tf-rfc-none", "jax-x64", types="int8,int16").counts == {"accepted": 2}
    assert compare("torch", "jax-x64", types="uint64,uint8").counts == {"accepted": 2}
    assert compare("jax-x64", "numpy", "pow", types="bool").counts == {"narrower": 1}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("operation", [None, "divide"])
def test_differences_are_mirrored_in_the_opposite_direction(operation):
    opposite = {"wider": "narrower", "narrower": "wider", "refused": "accepted", "accepted": "refused"}
    types = ["bool", "uint8", "uint64", "int32", "bfloat16", "float16", "float32", "complex64", "int*", "float*"]
    ways = set()
    for a, b in itertools.combinations(HOMES, 2):
        there, back = compare(a, b, operation, types).differing, compare(b, a, operation, types).differing
        assert there == {pair: opposite.get(how, how) for pair, how in back.items()}, (a, b)
        ways |= {*there.values(), *back.values()}
    # Only numbers give "value". PyArrow gives int64 for uint64 with a Python int, but divides integers like no other.
    assert ways == set(DIFFERENCES) - ({"value", "other"} if operation else {"value"})


def test_custom_rule_sets_are_compared():
    compared = compare("jax-x64", MINE, types="int8,int16,int32")
    assert compared.counts == {"refused": 5}
    marks = compared.side_by_side().left.marks
    assert {mark.meaning: count for mark, count in marks.items()} == {"refused by mine": 5}
    with pytest.raises(ArgumentError, match="must have different names, got 'mine' twice"):
        compare(MINE, RuleSet.from_lattice("mine", {"int8": []}))
    assert compare(MINE, MINE, types="int8").differing == {}


def test_formats_of_the_same_width_and_kind_have_the_difference_other():
    halves = [RuleSet.from_lattice(half, {"int8": [half], "uint8": [half]}) for half in ("float16", "bfloat16")]
    assert compare(*halves, types="int8,uint8").counts == {"other": 2}


def test_data_and_drawing_contain_both_sides():
    compared = compare("jax-x64", "numpy", types="int32,float32")
    assert compared.data()["differences"] == [
        {"left": "int32", "right": "float32", "how": "wider", "jax-x64": "float32", "numpy": "float64"},
        {"left": "float32", "right": "int32", "how": "wider", "jax-x64": "float32", "numpy": "float64"},
    ]
    drawn = compared.drawing()
    assert drawn.title == "result_type under jax-x64, 2 of 4 cells differ from numpy"
    assert [[cell.marked for cell in cells] for _, cells in drawn.rows] == [[False, True], [True, False]]
    assert "rules numpy" in drawn.rows[0][1][1].hint


def test_groupings_contain_the_example_of_numpy():
    found = set(groupings("numpy", ["int8", "uint8", "float16"]))
    assert ("int8", "uint8", "float16") in found
    assert list(groupings("jax-x64", ["int8", "uint8", "float16"])) == []


def test_triples_of_both_rule_sets_are_not_listed_for_one():
    types = ["int8", "uint8", "float16", "float32", "int16"]
    found = compare_groupings("numpy", "torch", types)
    one, other = (set(groupings(rules, types)) for rules in ("numpy", "torch"))
    assert found.counts == {"numpy": len(one), "torch": len(other)}
    assert found.only == {"numpy": sorted(one - other), "torch": sorted(other - one)}
    both = compare_groupings("tf-safe", "tf-rfc-safe", types)
    assert set(groupings("tf-safe", types)) & set(groupings("tf-rfc-safe", types))
    assert both.only["tf-safe"] != sorted(groupings("tf-safe", types))
    assert both.only["tf-rfc-safe"] != sorted(groupings("tf-rfc-safe", types))
    assert "of them only here" in both.headings()["tf-safe"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: compare("jax-x64", "numpyy"), UnknownNameError),
        (lambda: rule_table("jax-x64", "sin"), UnknownNameError),
        (lambda: type_names("int8,,int9"), UnknownDtypeError),
    ],
)
def test_unknown_names_raise(call, error):
    with pytest.raises(error, match="unknown"):
        call()


def test_every_operation_of_two_operands_has_a_table():
    assert len(rule_table("paddle", "bitwise_and").decisions) == len(STANDARD_TYPES) ** 2


def test_python_numbers_with_different_values_are_a_difference():
    found = compare("jax-x64", "torch", "multiply", types="float16,131072.0,2.0")
    assert {pair: how for pair, how in found.differing.items() if "float16" in pair} == {
        ("float16", "131072.0"): "value",
        ("131072.0", "float16"): "value",
    }
    told = {(cell["left"], cell["right"]): (cell["jax-x64"], cell["torch"]) for cell in found.data()["differences"]}
    assert told["float16", "131072.0"] == ("float16", "float16")
    changes = [cell["changes"] for cell in found.data()["differences"] if "float16" in (cell["left"], cell["right"])]
    assert changes == [{"jax-x64": ["131072.0 overflows to inf"]}] * 2
    assert compare("jax-x64", "numpy", "multiply", types="int8,1000").differing["int8", "1000"] == "refused"


def test_numbers_can_be_compared_at_the_command_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    done = CliRunner().invoke(
        app, ["diff", "torch", "jax-x64", "--operation", "multiply", "--types", "float16,131072.0"]
    )
    assert done.exit_code == 0, done.output
    assert "f16, 131072.0 overflows to inf  value" in " ".join(done.output.split(" " * 2))
