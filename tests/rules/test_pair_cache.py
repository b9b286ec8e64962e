"""`result_type` of two arrays, which is cached, always agrees with `explain`."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from supremum import explain, result_type
from supremum.lattice import Lattice
from supremum.operands import number_text
from supremum.rules import JAX_X64, LatticeRuleSet, rule_names, weak_defaults

NAMES = ["bool", "uint8", "int8", "int16", "uint32", "int64", "bfloat16", "float16", "float32", "float64", "complex64"]


def _result_or_error(function, *operands, **kwargs):
    try:
        return function(*operands, **kwargs)
    except TypeError as error:
        return type(error)


def test_cached_results_match_explain_for_numpy_arrays():
    arrays = [np.zeros(shape, name) for name in NAMES for shape in ((2,), ())]
    for rules in rule_names():
        answers, wrong = 0, []
        for a, b in itertools.product(arrays, repeat=2):
            expected = _result_or_error(lambda *o, rules=rules: explain(*o, rules=rules).dtype, a, b)
            for _ in range(2):  # the second round uses the cache
                result = _result_or_error(result_type, a, b, rules=rules)
                if result != expected:
                    wrong.append(f"{a.dtype}{a.shape} and {b.dtype}{b.shape}: {result}, not {expected}")
                answers += isinstance(result, np.dtype)
        assert wrong == [], rules
        assert answers >= 8 * len(NAMES) - 16, rules  # each dtype with itself, except those that the rules lack


@pytest.mark.parametrize("rules", rule_names())
def test_reasons_name_the_number_of_their_call_not_one_that_was_decided_before(rules):
    pairs = [(300, 301), (2**40, 2**40 + 1), (-129, -130), (1.5, 2.5), (1.5j, 2.5j), (1e300, 2e300)]
    calls = [("assign", "int8"), ("assign", "bool"), ("add", "float16"), ("where", None), ("clip", None)]
    for (before, number), (operation, into) in itertools.product(pairs, calls):
        for kind in ("bool", "int8", "float16", "complex64"):
            first = [] if operation == "assign" else [kind]
            explain(*first, before, operation=operation, into=into, rules=rules)
            reason = explain(*first, number, operation=operation, into=into, rules=rules).reason
            assert all(number_text(before) not in each for each in reason), (kind, operation, into, reason)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rules", ["jax", "numpy", "torch", "tf-rfc-all"])
def test_cached_results_match_explain_for_jax_arrays(rules):
    arrays = [
        jnp.zeros(shape, name) for name in NAMES if "64" not in name or name == "complex64" for shape in ((2,), ())
    ]
    arrays += [jnp.asarray(1), jnp.asarray(1.0), jnp.asarray(1j)]
    answers = 0
    for a, b in [*itertools.product(arrays, repeat=2)] * 2:
        result = _result_or_error(result_type, a, b, rules=rules)
        assert result == _result_or_error(lambda *o: explain(*o, rules=rules).dtype, a, b)
        answers += isinstance(result, np.dtype)
    assert answers >= 4 * len(arrays)


def test_cached_results_match_explain_for_mixed_operands():
    weak = jnp.asarray(1.0)
    for a, b in [(np.zeros(2, "int8"), weak), (weak, np.zeros(2, "int8")), (np.zeros(2, "int8"), 1), (1, 1)] * 2:
        assert result_type(a, b, rules="jax-x64") == explain(a, b, rules="jax-x64").dtype


def test_rule_sets_with_the_same_name_are_cached_separately():
    def rules(top):
        lattice = Lattice({"int8": [top], "uint8": [top], "int16": [], "int32": []})
        return LatticeRuleSet("mine", "", "", lattice, weak_defaults("int64", "float64", "complex128"))

    a, b = np.zeros(2, "int8"), np.zeros(2, "uint8")
    for mine, expected in [(rules("int16"), "int16"), (rules("int32"), "int32")] * 2:
        assert result_type(a, b, rules=mine) == np.dtype(expected)


def test_results_ignore_byte_order_and_array_subclasses():
    swapped = np.zeros(2, ">f4")
    assert result_type(swapped, np.zeros(2, "f4"), rules=JAX_X64) == np.dtype("float32")
    masked = np.ma.zeros(2, "int8")
    assert result_type(masked, masked, rules=JAX_X64) == np.dtype("int8")


def test_weak_jax_arrays_are_weak_only_under_rules_that_know_them():
    weak, strong = jnp.asarray(1.0), np.zeros(2, "float16")
    for rules, expected in (
        ("jax-x32", "float16"),
        ("numpy", "float32"),
        ("torch", "float16"),
        ("tf-rfc-all", "float32"),
    ):
        for _ in range(2):
            assert explain(weak, strong, rules=rules).dtype == np.dtype(expected), rules
    assert str(explain(weak, strong, rules="numpy").operands[0]) == "float32[]"
