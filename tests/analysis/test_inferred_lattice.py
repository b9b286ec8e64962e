"""Lattices inferred from decisions."""

import itertools

import pytest

from rule_sets import FRAMEWORK_RULES
from supremum import RuleSet, get_rules
from supremum.analysis.inferred_lattice import NoLattice, Order, order_of
from supremum.analysis.tables import ALL_TYPES, STANDARD_TYPES
from supremum.errors import ArgumentError, UnknownNameError
from supremum.formats import FORMATS, is_available
from supremum.lattice import Counterexample, Lattice, counterexamples
from supremum.operands import WEAK_NAMES, as_operand
from supremum.rules.rule_set import LatticeRuleSet

RULE_SETS = FRAMEWORK_RULES
OF_JAX = ("jax-x64", "jax-x32", "jax-explicit-x64", "jax-strict-x64", "jax-strict-x32", "jax-strict-explicit-x64")
LATTICES = [*OF_JAX, "tf-rfc-none", "tf-off", "tf-all", "pyarrow", "array-api"]
FORMAT_NAMES = [row.name for row in FORMATS]


def _join(rules, a, b):
    result = get_rules(rules).decide(None, (as_operand(a), as_operand(b))).result
    return None if result is None else result.name


def _reduced(lattice, nodes):
    """The edges of an order over some of its nodes, computed from upper bounds instead of joins."""
    below = {(a, b) for a, b in itertools.permutations(nodes, 2) if b in lattice.upper_bounds(a)}
    return {(a, b) for a, b in below if not any((a, c) in below and (c, b) in below for c in nodes)}


def _edges(lattice):
    return {(a, b) for a, above in lattice.edges.items() for b in above}


def test_which_rule_sets_are_lattices():
    assert [name for name in RULE_SETS if isinstance(order_of(name), Order)] == LATTICES


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rules", RULE_SETS)
def test_a_rule_set_is_a_lattice_exactly_if_pairs_of_its_formats_associate(rules):
    found = order_of(rules)
    failing = [
        each for each in counterexamples(lambda a, b: _join(rules, a, b), FORMAT_NAMES) if each.law == "associative"
    ]
    assert isinstance(found, NoLattice) == bool(failing)
    if isinstance(found, NoLattice):
        assert 0 < found.count <= len(failing)
        a, b, c = found.counterexample.nodes
        left, right = _grouped(rules, a, b, c), _grouped(rules, c, b, a)
        assert (left, right) == (found.counterexample.left, found.counterexample.right)
        assert left != right


def _grouped(rules, a, b, c):
    both = _join(rules, a, b)
    return None if both is None else _join(rules, both, c)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rules", LATTICES)
@pytest.mark.parametrize("types", ["all", "standard"])
def test_the_joins_of_the_order_are_the_decisions(rules, types):
    order = order_of(rules, types)
    names = ALL_TYPES if types == "all" else STANDARD_TYPES
    taken = 0
    for a, b in itertools.product(names, repeat=2):
        if {a, b} & set(order.left_out):
            assert _join(rules, a, b) is None or (rules == "array-api" and {a, b} & set(WEAK_NAMES))
        elif order.note and {a, b} & set(WEAK_NAMES):
            assert not {a, b} & set(WEAK_NAMES) & set(order.lattice.nodes)
        else:
            taken += 1
            assert order.lattice.join(*(order.held_as.get(name, name) for name in (a, b))) == _join(rules, a, b)
    assert taken >= (12 if rules == "pyarrow" else 13) ** 2  # pyarrow has 12 types


# With 8-bit floats, tinygrad's order is not a lattice: two of them have two smallest upper bounds.
TYPES_OF = {"tinygrad": "standard"}


@pytest.mark.parametrize("rules", [name for name in RULE_SETS if isinstance(get_rules(name), LatticeRuleSet)])
def test_the_inferred_edges_are_those_of_the_rule_set(rules):
    asked = TYPES_OF.get(rules, "all")
    order = order_of(rules, asked)
    known = {name for name in get_rules(rules).lattice.nodes if asked == "all" or name in STANDARD_TYPES}
    assert set(order.lattice.nodes) == known - {*order.held_as, *order.left_out}
    assert _edges(order.lattice) == _reduced(get_rules(rules).lattice, order.lattice.nodes)
    assert len(_edges(order.lattice)) >= 13


def test_rule_sets_with_edges_are_lattices():
    found = {name for name in RULE_SETS if isinstance(get_rules(name), LatticeRuleSet)}
    assert {*OF_JAX, "array-api"} <= found
    assert set(order_of("jax-x64").left_out) == set(filter(is_available, ("bcomplex32", "complex32")))


def test_64_bit_types_are_replaced_under_jax_x32():
    order = order_of("jax-x32")
    assert order.held_as == {
        "uint64": "uint32", "int64": "int32", "float64": "float32", "complex128": "complex64",
    }  # fmt: skip
    assert not set(order.held_as) & set(order.lattice.nodes)
    assert order_of("jax-x64").held_as == {}


def test_weak_kinds_that_fit_no_order_are_left_out_with_a_note():
    order = order_of("tf-off")
    assert not set(WEAK_NAMES) & set(order.lattice.nodes)
    assert order.note == "Without int*, float*, complex*, which fit no order: int* with itself gives int32."
    assert order_of("tf-all").note == ""
    numpy = order_of("numpy", "int*,int64")  # here int* and int64 have the same joins, but not among all types
    assert (numpy.lattice.nodes, numpy.held_as) == (("int64",), {})
    assert numpy.note == "Without int*, which fit no order: int* with itself gives int64."


def test_types_that_others_promote_to_are_added():
    assert order_of("jax-x64", ["uint64", "int8"]).lattice.edges == {
        "uint64": ("float*",), "int8": ("float*",), "float*": (),
    }  # fmt: skip
    assert order_of("jax-x64", "int8,float8_e5m2").lattice.nodes == ("int8", "float8_e5m2")


def test_a_redundant_edge_of_custom_rules_is_removed():
    mine = RuleSet.from_lattice(
        "mine", {"bool": ["int8", "float32"], "int8": ["float32"], "int*": ["int8"], "float16": []}
    )
    order = order_of(mine)
    assert order.rules == "mine"
    assert _edges(order.lattice) == {("bool", "int8"), ("int8", "float32"), ("int*", "int8")}
    assert set(order.lattice.nodes) == {"bool", "int8", "float32", "int*", "float16"}
    assert set(order.left_out) == set(ALL_TYPES) - set(order.lattice.nodes)
    assert Lattice(order.lattice.edges).join("bool", "int*") == "int8"


def test_counterexamples_prefer_common_types_without_refusals():
    numpy = order_of("numpy").counterexample
    assert numpy == Counterexample("associative", ("uint8", "int8", "float16"), "float32", "float16")
    assert str(order_of("torch").counterexample) == (
        "(bool, uint16), bfloat16 is refused, but bool, (uint16, bfloat16) gives bfloat16"
    )
    keras = order_of("keras").counterexample
    assert (keras.law, None in (keras.left, keras.right)) == ("associative", False)


def test_types_that_the_rules_refuse_raise():
    with pytest.raises(ArgumentError, match="array-api refuses bfloat16, float16 even with itself"):
        order_of("array-api", "bfloat16,float16")
    with pytest.raises(UnknownNameError, match="did you mean 'jax-x64'"):
        order_of("jax-64")
