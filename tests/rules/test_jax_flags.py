"""The rules that `"jax"` and `"jax-strict"` select, by JAX's flags or, before JAX is loaded, its environment."""

import contextlib
import itertools
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import PromotionError, explain, get_rules, result_type
from supremum.arrays import asarray
from supremum.operands import as_operand
from supremum.rules.jax_flags import is_strict, is_x64
from supremum.rules.names import JAX_ALIASES, question

FLAGS = list(itertools.product((False, True), ("warn", "error", "allow"), ("standard", "strict")))
# One combination per rule set: the second flag has no effect with x64, and "error" selects the rules of "warn".
DISTINCT = [each for each in FLAGS if each[:2] in ((True, "warn"), (False, "warn"), (False, "allow"))]


@contextlib.contextmanager
def flags(x64, explicit, promotion, *, scoped=True):
    """Set JAX's flags, with its context managers where they exist, or for the whole process."""
    config = jax.config
    before = config.jax_enable_x64, config.jax_explicit_x64_dtypes, config.jax_numpy_dtype_promotion
    config.update("jax_explicit_x64_dtypes", explicit)
    try:
        if scoped:
            with jax.enable_x64(x64), jax.numpy_dtype_promotion(promotion):
                yield
        else:
            config.update("jax_enable_x64", x64)
            config.update("jax_numpy_dtype_promotion", promotion)
            yield
    finally:
        names = ("jax_enable_x64", "jax_explicit_x64_dtypes", "jax_numpy_dtype_promotion")
        for name, value in zip(names, before, strict=True):
            config.update(name, value)


def expected(x64, explicit, promotion):
    width = "x64" if x64 else "explicit-x64" if explicit == "allow" else "x32"
    return f"jax-strict-{width}" if promotion == "strict" else f"jax-{width}"


@pytest.mark.parametrize("scoped", [True, False], ids=["scoped", "global"])
def test_jax_names_follow_every_combination_of_flags(scoped):
    for combination in [*FLAGS, *reversed(FLAGS)]:
        with flags(*combination, scoped=scoped):
            name = expected(*combination)
            assert get_rules().name == get_rules("jax").name == explain("int8", "int8").rules == name
            assert get_rules("jax-strict").name == expected(*combination[:2], "strict")
            assert explain(jnp.ones(1, "int8"), np.ones(1, "int8")).rules == name
            # The flags do not apply to arrays of other libraries, which follow the 64-bit rules.
            array = np.ones(1, "int8")
            for operand in (array, array[0], asarray(array)):
                assert explain(operand, 1, "int8").rules == "jax-x64"
                assert explain(operand, rules="jax-strict").rules == "jax-strict-x64"
                assert explain(operand, rules="jax-x32").rules == "jax-x32"


def _flag_reader(name, *operands):
    """Return the function that reads the flags that a decision under this name depends on, or None."""
    seen = [as_operand(each) for each in operands]
    found = question({each: get_rules(each).decide("add", seen).verdict.result for each in JAX_ALIASES[name]})
    return None if found is None else found.ask


def test_only_flags_that_make_a_difference_are_read():
    for call in [("float32", "float32"), ("bfloat16", 1.5), ("int8", 1)]:
        assert _flag_reader("jax", *call) is _flag_reader("jax-strict", *call) is None
    assert _flag_reader("jax", "bfloat16", "float32") is is_strict
    assert _flag_reader("jax-strict", "bfloat16", "float32") is None
    assert _flag_reader("jax", 1, 1) is _flag_reader("jax-strict", 1, 1) is is_x64
    for combination in FLAGS:
        with flags(*combination):
            assert _flag_reader("jax", "float64", "float64")() == expected(*combination)
            assert _flag_reader("jax-strict", "float64", "float64")() == expected(*combination[:2], "strict")


def test_results_for_two_arrays_follow_changed_flags():
    a, b, c = jnp.ones(2, "uint32"), jnp.ones(2, "int8"), jnp.ones(2, "int8")
    for combination in [*FLAGS, *FLAGS]:
        with flags(*combination):
            assert result_type(b, c) == "int8"
            if combination[2] == "strict":
                with pytest.raises(PromotionError, match="jax-strict"):
                    result_type(a, b)
            else:
                assert result_type(a, b) == ("int64" if combination[0] else "int32")
                assert result_type(np.asarray(a), np.asarray(b)) == "int64"  # the flags do not apply to NumPy arrays


PROGRAM = """
import os, sys
from supremum import explain, get_rules
from supremum.errors import ArgumentError
def asked():
    return get_rules().name, get_rules("jax-strict").name, explain("int64", "float32").rules
try:
    before = asked()
except ArgumentError as error:
    before = None
    assert os.environ["GIVEN"] in str(error)
assert "jax" not in sys.modules
try:
    import jax
except ValueError:
    assert before is None
else:
    assert asked() == before
print(before)
"""


def _environment(variable, value):
    return pytest.param(variable, value, marks=() if (variable, value) in FAST else pytest.mark.slow)


FAST = [("JAX_ENABLE_X64", "True")]
SETTINGS = [
    *(("JAX_ENABLE_X64", value) for value in ("True", "1", "yes", "ON", "t", "0", "false", "N", "", "2")),
    *(("JAX_NUMPY_DTYPE_PROMOTION", value) for value in ("strict", "standard", "STRICT")),
    *(("JAX_EXPLICIT_X64_DTYPES", value) for value in ("allow", "error", "warn", "Allow")),
]


@pytest.mark.parametrize(("variable", "value"), [_environment(*setting) for setting in SETTINGS])
def test_environment_variables_are_read_as_in_jax(variable, value):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), variable: value}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"GIVEN": repr(value)},
    )
    assert found.returncode == 0, found.stderr
    invalid = value in ("", "2", "STRICT", "Allow")
    assert (found.stdout == "None\n") == invalid
    width = "explicit-x64" if value == "allow" else "x64" if value in ("True", "1", "yes", "ON", "t") else "x32"
    if not invalid:
        assert f"'jax-{'strict-' * (value == 'strict')}{width}', 'jax-strict-{width}'" in found.stdout


def test_float64_and_no_dtype_are_different_answers():
    answers = {"jax-x64": np.dtype("float64"), "jax-x32": None, "jax-explicit-x64": None}
    found = question(answers)
    assert len({found.answer_under(name) for name in ("jax-x64", "jax-x32")}) == 2
