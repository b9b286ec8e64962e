"""The rules for JAX with x64 off and `jax_explicit_x64_dtypes="allow"`, compared with the installed JAX."""

import itertools

import jax
import jax.numpy as jnp
import pytest

from supremum import get_rules, result_type
from supremum.operands import as_operand
from supremum.rules import JAX_EXPLICIT_X64

STRONG = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bfloat16", "float16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
FUNCTIONS = {"add": jnp.add, "divide": jnp.divide, "equal": jnp.equal, "maximum": jnp.maximum, "sin": jnp.sin}


@pytest.fixture(autouse=True)
def _explicit_dtypes():
    before = jax.config.jax_explicit_x64_dtypes
    jax.config.update("jax_explicit_x64_dtypes", "allow")
    with jax.enable_x64(False):
        yield
    jax.config.update("jax_explicit_x64_dtypes", before)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes_and_weak_flags_agree_with_installed_jax(name):
    values = {each: jnp.ones((1,), each) for each in STRONG} | {"1": 1, "1.0": 1.0, "1j": 1j}
    values |= {f"weak {kind.__name__}": jnp.asarray(kind(1)) for kind in (int, float, complex)}
    assert values["int64"].dtype == "int64"
    different = {}
    for call in itertools.product(values, repeat=1 if name == "sin" else 2):
        theirs = jax.eval_shape(FUNCTIONS[name], *(values[each] for each in call))
        ours = JAX_EXPLICIT_X64.decide(name, [as_operand(values[each]) for each in call]).result
        found = (str(ours.dtype), ours.weak) if ours else None
        # JAX marks some bools as weak but ignores the mark.
        if found != (str(theirs.dtype), theirs.weak_type and theirs.dtype != bool):
            different[call] = found, (str(theirs.dtype), theirs.weak_type)
    assert different == {}


def test_rules_named_jax_follow_the_explicit_x64_flag():
    assert get_rules("jax") is JAX_EXPLICIT_X64
    assert result_type(jnp.ones(1, "int64"), "int8") == "int64"
    jax.config.update("jax_explicit_x64_dtypes", "error")
    assert get_rules("jax").name == "jax-x32"
    with jax.enable_x64(True):
        assert get_rules("jax").name == "jax-x64"


def test_only_64_bit_operands_give_64_bit_results():
    assert str(JAX_EXPLICIT_X64.decide("add", [as_operand("uint32"), as_operand("int8")]).dtype) == "int32"
    assert str(JAX_EXPLICIT_X64.decide("add", [as_operand("int64"), as_operand("int8")]).dtype) == "int64"
