"""Rule sets are compared by value, share their caches with equal ones, and are freed."""

import copy
import gc
import pickle
import sys
import threading
import weakref
from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from slowly import slow
from supremum import RuleSet, asarray, explain, get_rules, result_type, set_default_rules, use_rules
from supremum.decisions import Verdict
from supremum.formats import as_format
from supremum.rules import TORCH, find_rules
from supremum.rules.columns import Columns
from supremum.rules.names import HOMES
from supremum.rules.shared_cache import _KEYS

EDGES = {
    "int*": ["int8"],
    "int8": ["int16", "float*"],
    "int16": ["float32"],
    "float*": ["float16"],
    "float16": ["float32"],
}


def custom_rules(name="mine", **changed):
    return RuleSet.from_lattice(name, EDGES, **changed)


COPIES = {
    "made again": lambda rules: custom_rules(rules.name),
    "in another order": lambda rules: RuleSet.from_lattice(
        rules.name, {node: list(reversed(above)) for node, above in reversed(EDGES.items())}
    ),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda rules: pickle.loads(pickle.dumps(rules)),
    "replace": replace,
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_equal_rule_sets_are_the_same_key_and_share_verdicts(copied):
    rules = custom_rules()
    same = copied(rules)
    assert rules == same
    assert hash(rules) == hash(same)
    assert {rules: 1}[same] == 1
    assert explain("int8", "int16", rules=rules).verdict is explain("int8", "int16", rules=same).verdict


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, replace, lambda rules: pickle.loads(pickle.dumps(rules))])
def test_copies_of_every_rule_set_are_equal(copied):
    for name in HOMES:
        rules = find_rules(name)
        assert copied(rules) == rules, name
        assert hash(copied(rules)) == hash(rules), name
        assert [other for other in HOMES if find_rules(other) == rules] == [name]
        assert rules not in (name, None, 1)


def test_the_repr_of_a_rule_set_is_one_line_with_its_name():
    for name in HOMES:
        shown = repr(find_rules(name))
        assert repr(name) in shown
        assert "\n" not in shown, name
        assert len(shown) < 200, name


def test_rule_sets_that_differ_in_any_field_are_unequal():
    different = {
        "name": "other", "summary": "other", "source": "other", "measured": frozenset({"add"}),
        "accepts": {"add": ("float",)}, "stands_in": {},
        "formats": frozenset({"int8"}), "computes": {"add": {"int8": "int16"}}, "weak_arrays": False,
        "quotients": {"int8": "float16"}, "gives": {"add": {"int8": "int16"}},
        "agreeing": frozenset({"add"}), "lacks": {"add": ("int8",)}, "reductions": {},
        "library": "other", "spelling": "torch",
        "in_place": TORCH.in_place, "item": TORCH.item, "lattice": find_rules("jax-x64").lattice,
        "defaults": find_rules("jax-x64").defaults, "held_as": {"int8": "int16"}, "held_because": "why",
        "joins_defaults": True, "array_casts": TORCH.array_casts, "columns": Columns(never_missing=frozenset()),
            "caps": {"float64": "float32"},
    }  # fmt: skip
    rules = custom_rules()
    assert different.keys() == {each.name for each in fields(rules)}
    for name, value in different.items():
        assert replace(rules, **{name: value}) != rules, name


def test_torch_rules_with_equal_defaults_are_equal():
    assert TORCH.with_default("float64") == TORCH.with_default("float64") != TORCH
    assert TORCH.with_default("float64").with_default("float32") is TORCH
    assert TORCH.with_default("float32") is TORCH


def test_a_subclass_with_the_same_fields_is_unequal():
    class Subclass(type(TORCH)):
        pass

    assert Subclass(**TORCH._values()) != TORCH


class Narrow(type(TORCH)):
    """Rules with an attribute that is not a dataclass field."""

    def __init__(self, most, **held):
        super().__init__(**held)
        self.most = most

    def _settle(self, operation, operands):
        verdict = super()._settle(operation, operands)
        if verdict.result is not None and as_format(verdict.result.dtype).bits > self.most:
            return Verdict.refuse(f"more than {self.most} bits")
        return verdict


def narrow(most, name="narrow"):
    return Narrow(most, **TORCH._values() | {"name": name})


def test_equality_includes_the_attributes_of_a_subclass():
    assert narrow(16) == narrow(16) != narrow(32)
    assert result_type("int16", "int32", rules=narrow(32)) == "int32"
    assert not explain("int16", "int32", rules=narrow(16))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda rules: pickle.loads(pickle.dumps(rules))])
def test_copies_of_a_subclass_are_equal(copied):
    rules = copied(narrow(16))
    assert rules == narrow(16)
    assert rules.most == 16
    assert not explain("int16", "int32", rules=rules)


def test_rule_sets_with_unhashable_attributes_equal_only_themselves():
    rules, other = narrow(np.array(16)), narrow(np.array(32))
    assert rules == rules != other
    assert hash(rules) == hash(rules)
    assert not explain("int16", "int32", rules=rules)
    assert explain("int16", "int32", rules=other)
    with use_rules(rules), pytest.raises(supremum.PromotionError, match="more than 16 bits"):
        _ = asarray(jnp.ones(2, "int16")) + jnp.ones(2, "int32")


def test_setting_the_default_in_a_thread_does_not_corrupt_caches():
    a, stopped = asarray(np.ones(2, "int8")), threading.Event()
    expected = {"numpy": "float64", "torch": "float32"}  # of int8 and a Python float
    before = sys.getswitchinterval()

    def switch():
        while not stopped.is_set():
            for name in expected:
                set_default_rules(name)

    thread = threading.Thread(target=switch)
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        assert {str((a * (number + 0.5)).dtype) for number in range(5000)} == set(expected.values())
    finally:
        stopped.set()
        thread.join()
        sys.setswitchinterval(before)
        set_default_rules("jax")
    for name, dtype in expected.items():
        with use_rules(name):
            assert {str((a * (number + 0.5)).dtype) for number in range(5000)} == {dtype}


def test_equal_rule_sets_share_jax_traces():
    traced = []

    @jax.jit
    def add(a, b):
        traced.append(get_rules().name)
        return a + b

    a, b = asarray(jnp.ones(2, "int8")), asarray(jnp.ones(2, "float16"))
    for _ in range(3):
        with use_rules(custom_rules()):  # the previous one is freed by now
            assert add(a, b).dtype == "float16"
    assert traced == ["mine"]
    with use_rules(custom_rules("yours")):
        add(a, b)
    assert traced == ["mine", "yours"]


def test_equal_rule_sets_from_several_threads_share_one_memory():
    barrier, found = threading.Barrier(8), []

    def make():
        barrier.wait()
        found.extend(custom_rules(f"together {number}").memory for number in range(200))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 200


@pytest.mark.slow
@pytest.mark.parametrize("count", [500, slow(5000)])
def test_rule_sets_are_freed(count):
    """Everything that is cached by rule set is used first: verdicts, fixes, pairs, operators, numbers, JAX's traces."""
    a, b = asarray(np.ones(2, "int8")), asarray(np.ones(2, "float16"))
    jitted = jax.jit(lambda a, b: a * b)
    gc.collect()
    before = len(_KEYS)
    alive = []
    for number in range(count):
        rules = RuleSet.from_lattice(f"number {number}", EDGES)
        alive.append(weakref.ref(rules))
        assert result_type(a.unwrap(), b.unwrap(), rules=rules) == "float16"
        assert not explain("int8", "float64", rules=rules)
        if number % 10 == 0:
            with use_rules(rules):
                assert (a + b).dtype == "float16"
                assert (a * 2).dtype == "int8"
                with pytest.raises(supremum.PromotionError):
                    _ = a + np.ones(2, "int64")
        if number % 500 == 0:
            with use_rules(rules):
                jitted(asarray(jnp.ones(2, "int8")), asarray(jnp.ones(2, "float16")))
    del rules
    gc.collect()
    assert sum(each() is not None for each in alive) == 0
    assert len(_KEYS) - before <= 11  # JAX keeps those that it traced for, and the last one in force
