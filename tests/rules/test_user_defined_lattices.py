"""User-defined rule sets: what they decide, which edges raise, and that they work wherever built-in ones do."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import Array, PromotionError, explain, get_rules, result_type, use_rules
from supremum.analysis.comparison import compare
from supremum.analysis.tables import rule_table
from supremum.errors import ArgumentError, UnknownDtypeError
from supremum.lattice import counterexamples
from supremum.rules import JAX_X64, RuleSet

CHAIN = {"bool": ["int*"], "int*": ["int8"], "int8": ["int16"], "int16": ["float*"], "float*": ["bfloat16"]}
BFLOAT = RuleSet.from_lattice("all in bfloat16", CHAIN | {"bfloat16": ["float32"]})
HALF = RuleSet.from_lattice("all in float16", {"int8": ["float16"], "float*": ["float16"], "float16": ["float32"]})


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


def test_array_operators_follow_a_user_defined_rule_set():
    for ones in (np.ones, jnp.ones):
        with use_rules(BFLOAT) as rules:
            assert rules is BFLOAT is get_rules()
            assert (Array(ones(2, "int8")) + Array(ones(2, "bfloat16"))).dtype == "bfloat16"
            assert (1.5 * Array(ones(2, "int16"))).dtype == "float32"  # float* becomes the default float
            with pytest.raises(PromotionError, match="rules all in bfloat16"):
                Array(ones(2, "int8")) + Array(ones(2, "uint8"))
        with use_rules(HALF):
            assert (1.5 * Array(ones(2, "int8"))).dtype == "float16"


def test_jit_traces_once_for_each_user_defined_rule_set():
    traced = []

    @jax.jit
    def scaled(x):
        traced.append(get_rules().name)
        return (Array(x) * 1.5).unwrap()

    x = jnp.ones(2, "int8")
    for _ in range(2):
        with use_rules(BFLOAT):
            assert scaled(x).dtype == "float32"
        with use_rules(HALF):
            assert scaled(x).dtype == "float16"
    assert traced == ["all in bfloat16", "all in float16"]
    # Rule sets with the same name and different edges are different values.
    with use_rules(RuleSet.from_lattice("all in float16", CHAIN)):
        assert scaled(x).dtype == "float32"


def test_user_defined_rule_sets_have_tables_and_comparisons():
    table = rule_table(BFLOAT, types="int8,int16,float*").data()["table"]
    assert table["int8"] == {"int8": "int8", "int16": "int16", "float*": "float*"}
    assert compare(BFLOAT, HALF, types="int8,float16").counts == {"accepted": 3}  # BFLOAT has no float16
    assert not compare(BFLOAT, BFLOAT).counts


def test_weak_kinds_take_the_given_defaults():
    narrow = RuleSet.from_lattice("bfloat16 by default", CHAIN, defaults={"float*": "bfloat16", "int*": "int16"})
    assert result_type(1.5, rules=narrow) == "bfloat16"
    assert result_type("int8", 1.5, rules=narrow) == "bfloat16"
    assert result_type("bool", 1, rules=narrow) == "int16"
    assert explain("int8", 1.5, operation="divide", rules=narrow).dtype == "bfloat16"
    with use_rules(narrow):
        for ones in (np.ones, jnp.ones):
            assert (Array(ones(2, "int8")) * 1.5).dtype == "bfloat16"
            with pytest.raises(PromotionError, match="divide does not accept integer operands"):
                Array(ones(2, "int8")) / 2
    assert result_type(1.5, rules=pickle.loads(pickle.dumps(narrow))) == "bfloat16"


@pytest.mark.parametrize(
    ("edges", "defaults", "message"),
    [
        ({"int8": ["float16", "bfloat16"], "uint8": ["float16", "bfloat16"]}, None,
         "int8 and uint8 have two smallest upper bounds, float16 and bfloat16"),
        ({"int8": ["int16"], "int16": ["int8"]}, None, "form a cycle: int8 -> int16 -> int8"),
        ({"int8": "int16"}, None, r"the nodes above int8 must be a list of names, got 'int16'; use \['int16'\]"),
        ({}, None, "has no edges"),
        ({"int8": ["flaot16"]}, None, "unknown dtype 'flaot16': did you mean 'float16'"),
        (CHAIN, {"float*": "int8"}, r"the default of float\* must be of category float, got int8"),
        (CHAIN, {"int*": "float32"}, r"the default of int\* must be of category integer, got float32"),
        (CHAIN, {"float32": "float16"}, r"defaults must be for int\*, float\*, complex\*, got 'float32'"),
        (CHAIN, {"float*": "flaot16"}, "did you mean 'float16'"),
    ],
)  # fmt: skip
def test_edges_that_are_not_a_lattice_and_wrong_defaults_raise(edges, defaults, message):
    with pytest.raises(UnknownDtypeError if "did you mean" in message else ArgumentError, match=message):
        RuleSet.from_lattice("bad", edges, defaults=defaults)


def test_the_name_of_a_built_in_rule_set_is_refused():
    with pytest.raises(ArgumentError, match="name must not be empty or the name of a built-in rule set, got 'jax'"):
        RuleSet.from_lattice("jax", EDGES)


def test_a_user_defined_rule_set_can_be_the_process_default():
    before = get_rules()
    supremum.set_default_rules(BFLOAT)
    try:
        assert result_type("int16", "bfloat16") == "bfloat16"
    finally:
        supremum.set_default_rules("jax")
    assert get_rules() is before
