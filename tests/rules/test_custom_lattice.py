"""User-defined rule sets: what they decide, and which edges raise."""

import pickle

import pytest

from supremum import PromotionError, explain, result_type, use_rules
from supremum.errors import ArgumentError, UnknownDtypeError
from supremum.lattice import counterexamples
from supremum.rules import JAX_X64, RuleSet

EDGES = {
    "bool": ["int*"],
    "int*": ["int8", "uint8"],
    "int8": ["int16"],
    "uint8": ["int16"],
    "int16": ["float*"],
    "float*": ["bfloat16"],
    "bfloat16": ["float32"],
    "int4": [],
}
RULES = RuleSet.from_lattice("mine", EDGES)


def test_operands_promote_to_their_join():
    assert result_type("int8", "uint8", rules=RULES) == "int16"
    assert result_type("int8", "uint8", 1.5, rules=RULES) == "float32"
    assert result_type("uint8", 3, rules=RULES) == "uint8"
    assert result_type("int4", "int4", rules=RULES) == "int4"
    assert explain("int8", "int8", operation="divide", rules=RULES).result is None  # divide accepts only floats
    with use_rules(RULES):
        assert result_type("bool", "bfloat16") == "bfloat16"


@pytest.mark.parametrize("operands", [("int4", "int8"), ("float16", "int8"), ("complex*", "int8")])
def test_operands_without_a_join_or_edges_raise(operands):
    with pytest.raises(PromotionError, match=r"rules mine"):
        result_type(*operands, rules=RULES)


def test_joins_obey_the_lattice_laws_and_match_jax():
    order = RULES.lattice
    assert [*counterexamples(order.join, order.nodes)] == []
    jax = RuleSet.from_lattice("jax again", JAX_X64.lattice.edges)
    names = [name for name in jax.lattice.nodes if "*" not in name]
    for a in names:
        for b in names:
            ours, theirs = (explain(a, b, rules=each).result for each in (jax, JAX_X64))
            assert (ours and ours.name) == (theirs and theirs.name)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ({"int8": ["float16", "bfloat16"], "uint8": ["float16", "bfloat16"]},
         "int8 and uint8 have two smallest upper bounds, float16 and bfloat16"),
        ({"int8": ["int16"], "int16": ["int8"]}, "form a cycle: int8 -> int16 -> int8"),
        ({"int8": "int16"}, r"the nodes above int8 must be a list of names, got 'int16'; use \['int16'\]"),
        ({}, "has no edges"),
    ],
)  # fmt: skip
def test_edges_that_are_not_a_lattice_raise_with_a_counterexample(edges, message):
    with pytest.raises(ArgumentError, match=message):
        RuleSet.from_lattice("bad", edges)


def test_unknown_dtypes_and_taken_names_raise():
    with pytest.raises(UnknownDtypeError, match="unknown dtype 'flaot16': did you mean 'float16'"):
        RuleSet.from_lattice("bad", {"int8": ["flaot16"]})
    with pytest.raises(ArgumentError, match="name must not be empty or the name of a built-in rule set, got 'jax'"):
        RuleSet.from_lattice("jax", EDGES)


def test_a_pickled_rule_set_decides_the_same():
    copy = pickle.loads(pickle.dumps(RULES))
    assert result_type("int8", "uint8", rules=copy) == "int16"
