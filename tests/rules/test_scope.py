"""The rules in force, from the argument, scope or default, in functions, tasks, threads and traces."""

import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import UnknownNameError, explain, get_rules, promote_types, result_type
from supremum.rules import JAX_X32, JAX_X64, NUMPY, PADDLE, TORCH, set_default_rules, use_rules


def rules_in_force():
    """Return the name of the rules in force, from a decision."""
    return explain("int8", "float32").rules


@pytest.fixture
def default():
    """Return a function that sets the default until the end of a test."""
    assert get_rules() in (JAX_X32, JAX_X64)
    yield set_default_rules
    set_default_rules("jax")


def test_all_functions_follow_the_scope():
    with use_rules("numpy"):
        assert result_type("int32", "float32") == np.dtype("float64") == promote_types("int32", "float32")
        assert supremum.can_promote("int32", "float32")
    with use_rules("tf-rfc-none"):
        assert not supremum.can_promote("int32", "float32")
    assert result_type("int32", "float32") == np.dtype("float32")
    arrays = np.zeros(2, "int32"), np.zeros(2, "float32")
    for rules, expected in (("numpy", "float64"), ("torch", "float32"), ("numpy", "float64"), ("jax", "float32")):
        with use_rules(rules):  # results for two arrays are cached by rule set
            assert [result_type(*arrays) for _ in range(3)] == [np.dtype(expected)] * 3


def test_an_error_leaves_the_outer_rules_in_force():
    with use_rules("paddle"):
        with pytest.raises(ZeroDivisionError), use_rules("torch"), use_rules("numpy"):
            _ = 1 / 0
        assert rules_in_force() == "paddle"
    assert rules_in_force() == "jax-x32"


def test_a_scope_can_be_entered_again_even_inside_itself():
    scope = use_rules("torch")
    for _ in range(2):
        with scope, use_rules("numpy"), scope:
            assert rules_in_force() == "torch"
            with use_rules("paddle"):
                assert rules_in_force() == "paddle"
            assert rules_in_force() == "torch"
        assert rules_in_force() == "jax-x32"


def test_use_rules_decorates_functions():
    @use_rules("torch")
    def depth(levels):
        """Goes down."""
        assert rules_in_force() == "torch"
        if levels:
            with use_rules("numpy"):
                return 1 + depth(levels - 1)
        return 0

    assert (depth.__name__, depth.__doc__) == ("depth", "Goes down.")
    assert depth(levels=3) == 3
    with use_rules("paddle"):
        assert depth(1) == 1
        assert rules_in_force() == "paddle"

    @use_rules("torch")
    def fails():
        raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert rules_in_force() == "jax-x32"


def test_use_rules_decorates_methods():
    class Model:
        @use_rules("numpy")
        def ask(self, *dtypes, rules=None):
            return explain(*dtypes, rules=rules).rules

    assert Model().ask("int8", "int8") == "numpy"
    assert Model().ask("int8", "int8", rules="torch") == "torch"


def test_the_argument_overrides_the_scope_and_the_scope_the_default(default):
    default("numpy")
    assert rules_in_force() == "numpy"
    assert get_rules() is NUMPY
    with use_rules("torch"):
        assert rules_in_force() == "torch"
        assert explain("int8", "int8", rules="paddle").rules == "paddle"
        default("tf-rfc-safe")
        assert rules_in_force() == "torch"
    assert rules_in_force() == "tf-rfc-safe"
    default("jax")
    assert rules_in_force() == "jax-x32"


def test_rule_sets_are_accepted_instead_of_names(default):
    with use_rules(PADDLE) as rules:
        assert rules is PADDLE
        assert rules_in_force() == "paddle"
        assert explain("int8", "int8", rules=NUMPY).rules == "numpy"
    default(TORCH)
    assert get_rules() is TORCH
    assert get_rules(NUMPY) is NUMPY


@pytest.mark.parametrize("rules", ["nunpy", "numy", "NumPy"])
def test_unknown_names_raise_with_similar_names_and_change_nothing(rules, default):
    default("torch")
    for ask in (use_rules, default, get_rules, lambda unknown: explain("int8", rules=unknown)):
        with use_rules("paddle"):
            with pytest.raises(UnknownNameError, match=r"unknown rule set .*did you mean 'numpy'\?"):
                ask(rules)
            assert rules_in_force() == "paddle"
        assert rules_in_force() == "torch"


def test_jax_follows_the_x64_flag_inside_scopes(default):
    with use_rules("numpy"), use_rules("jax") as rules:
        assert rules is JAX_X32
        with jax.enable_x64(True):
            assert get_rules() is JAX_X64
            assert result_type("int64", "int8") == np.dtype("int64")
        assert get_rules() is JAX_X32
        assert result_type("int64", "int8") == np.dtype("int32")
    default("jax")
    with jax.enable_x64(True):
        assert rules_in_force() == "jax-x64"
        arrays = jnp.zeros(2, "uint32"), jnp.zeros(2, "int8")
        assert result_type(*arrays) == result_type(*arrays) == np.dtype("int64")
    assert result_type(*arrays) == np.dtype("int32")


def test_new_threads_start_from_the_default(default):
    seen = {}

    def ask(key):
        seen[key] = rules_in_force()
        with use_rules("torch"):
            seen[key, "inside"] = rules_in_force()

    def in_thread(key):
        thread = threading.Thread(target=ask, args=(key,))
        thread.start()
        thread.join()

    with use_rules("numpy"):
        in_thread("jax")
        assert rules_in_force() == "numpy"
        default("paddle")
        in_thread("paddle")
        assert rules_in_force() == "numpy"
    assert seen == {
        "jax": "jax-x32", ("jax", "inside"): "torch", "paddle": "paddle", ("paddle", "inside"): "torch",
    }  # fmt: skip


@pytest.fixture
def traced():
    """Return a jitted sum in the dtype of the rules in force, and a list with the rules of each trace."""
    traces = []

    @jax.jit
    def add(a, b):
        traces.append(rules_in_force())
        dtype = result_type(a.dtype, b.dtype)
        return a.astype(dtype) + b.astype(dtype)

    operands = jnp.ones(2, "int8"), jnp.ones(2, "bfloat16")
    return lambda: add(*operands).dtype.name, traces


def test_jitted_functions_are_traced_once_for_each_rule_set(traced):
    add, traces = traced
    assert [add(), add()] == ["bfloat16"] * 2
    assert traces == ["jax-x32"]
    for _ in range(2):
        with use_rules("numpy"):
            assert [add(), add()] == [result_type("int8", "bfloat16").name] * 2
        with use_rules("tf-rfc-all"), use_rules("numpy"):
            add()
    assert traces == ["jax-x32", "numpy"]
    with use_rules("tf-rfc-all"):
        assert add() == result_type("int8", "bfloat16").name
    assert traces == ["jax-x32", "numpy", "tf-rfc-all"]
    assert add() == "bfloat16"
    assert len(traces) == 3


def test_jitted_functions_raise_again_only_under_rules_that_raise(traced):
    add, traces = traced
    for _ in range(2):
        assert add() == "bfloat16"
        with use_rules("tf-rfc-none"), pytest.raises(supremum.PromotionError):
            add()
    assert traces[:2] == ["jax-x32", "tf-rfc-none"]
    assert traces.count("jax-x32") == 1


def test_jitted_functions_are_traced_again_under_a_different_default(traced, default):
    add, traces = traced
    add()
    for rules in ("torch", "numpy", "torch", NUMPY, "jax"):
        default(rules)
        assert [add(), add()] == [result_type("int8", "bfloat16").name] * 2
    assert traces[:3] == ["jax-x32", "torch", "numpy"]
    assert len(traces) <= 5  # a rule set may be traced separately from its name
    count = len(traces)
    with use_rules("tf-rfc-all"):
        add()
    assert traces[count:] == ["tf-rfc-all"]
    thread = threading.Thread(target=default, args=("array-api",))
    thread.start()
    thread.join()
    with pytest.raises(supremum.PromotionError):  # a default set in a different thread applies here too
        add()


def test_scopes_and_the_default_stay_in_force_when_jax_is_imported():
    code = """
import sys
from supremum import explain
from supremum.rules import set_default_rules, use_rules
with use_rules("torch"):
    assert explain("int8", "int16").rules == "torch"
assert explain("int8", "int16").rules == "jax-x32"
set_default_rules("numpy")
with use_rules("paddle"):
    assert "jax" not in sys.modules
    import jax
    assert explain("int8", "int16").rules == "paddle"
    traces = []
    ask = jax.jit(lambda x: (traces.append(explain("int8", "int16").rules), x)[1])
    ask(1.0)
assert explain("int8", "int16").rules == "numpy"
ask(1.0)
with use_rules("torch"):
    ask(1.0)
ask(1.0)
set_default_rules("jax")
ask(1.0)
assert list(dict.fromkeys(traces)) == ["paddle", "numpy", "torch", "jax-x32"], traces
count = len(traces)
ask(1.0)
with use_rules("torch"):
    ask(1.0)
assert len(traces) == count, traces
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_rules_of_a_scope_that_imports_jax_end_with_the_scope_without_another_default():
    code = """
from supremum import explain
from supremum.rules import use_rules
traces = []
with use_rules("paddle"):
    import jax
    ask = jax.jit(lambda x: (traces.append(explain("int8", "int16").rules), x)[1])
    ask(1.0)
ask(1.0)
assert traces == ["paddle", "jax-x32"], traces
"""
    subprocess.run([sys.executable, "-c", code], check=True)
