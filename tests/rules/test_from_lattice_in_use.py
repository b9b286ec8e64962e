"""User-defined rule sets work wherever built-in ones do."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import Array, PromotionError, get_rules, use_rules
from supremum.analysis.comparison import compare
from supremum.analysis.tables import rule_table
from supremum.errors import ArgumentError, UnknownDtypeError
from supremum.rules import RuleSet

CHAIN = {"bool": ["int*"], "int*": ["int8"], "int8": ["int16"], "int16": ["float*"], "float*": ["bfloat16"]}
BFLOAT = RuleSet.from_lattice("all in bfloat16", CHAIN | {"bfloat16": ["float32"]})
HALF = RuleSet.from_lattice("all in float16", {"int8": ["float16"], "float*": ["float16"], "float16": ["float32"]})


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
    assert supremum.result_type(1.5, rules=narrow) == "bfloat16"
    assert supremum.result_type("int8", 1.5, rules=narrow) == "bfloat16"
    assert supremum.result_type("bool", 1, rules=narrow) == "int16"
    assert supremum.explain("int8", 1.5, operation="divide", rules=narrow).dtype == "bfloat16"
    with use_rules(narrow):
        for ones in (np.ones, jnp.ones):
            assert (Array(ones(2, "int8")) * 1.5).dtype == "bfloat16"
            with pytest.raises(PromotionError, match="divide does not accept integer operands"):
                Array(ones(2, "int8")) / 2
    assert supremum.result_type(1.5, rules=pickle.loads(pickle.dumps(narrow))) == "bfloat16"


@pytest.mark.parametrize(
    ("defaults", "message"),
    [
        ({"float*": "int8"}, "the default of float\\* must be of category float, got int8"),
        ({"int*": "float32"}, "the default of int\\* must be of category integer, got float32"),
        ({"float32": "float16"}, "defaults must be for int\\*, float\\*, complex\\*, got 'float32'"),
    ],
)
def test_defaults_of_a_different_category_raise(defaults, message):
    with pytest.raises(ArgumentError, match=message):
        RuleSet.from_lattice("bad", CHAIN, defaults=defaults)
    with pytest.raises(UnknownDtypeError, match="did you mean 'float16'"):
        RuleSet.from_lattice("bad", CHAIN, defaults={"float*": "flaot16"})


def test_a_user_defined_rule_set_can_be_the_process_default():
    before = get_rules()
    supremum.set_default_rules(BFLOAT)
    try:
        assert supremum.result_type("int16", "bfloat16") == "bfloat16"
    finally:
        supremum.set_default_rules("jax")
    assert get_rules() is before
