"""Weak arrays of every library promote as in JAX; rules without weak types create no weak arrays."""

import importlib.util
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arrays.calls import RULE_SETS
from supremum import explain, get_rules, use_rules
from supremum.arrays import asarray, ops
from supremum.arrays.wrapped import wrap

LIBRARIES = [name for name in ("numpy", "torch", "jax") if name == "numpy" or importlib.util.find_spec(name)]


def test_results_of_jax_carry_the_weak_flag_of_jax():
    """The flag is on the raw array of JAX, not only on ours."""
    numbers = {"int*": 2, "float*": 2.0}
    with jax.enable_x64(True), use_rules("jax-x64"):
        theirs = {
            name: jnp.asarray(numbers.get(name, np.ones(2, name.strip("*")))) for name in ("int*", "float*", "int8")
        }
        for name, (a, b) in itertools.product(("add", "less"), itertools.product(theirs.values(), repeat=2)):
            result, expected = getattr(ops, name)(wrap(a), wrap(b)).unwrap(), getattr(jnp, name)(a, b)
            assert result.dtype == expected.dtype
            assert result.weak_type == (expected.weak_type and name != "less"), (name, a, b)


@pytest.mark.parametrize("library", LIBRARIES)
def test_only_arrays_of_python_numbers_are_weak_and_only_under_rules_with_weak_types(library):
    # JAX compiles for each rule set, so it has those with weak arrays and a few of the others.
    asked = [
        name for at, name in enumerate(RULE_SETS) if library != "jax" or get_rules(name).weak_arrays or at % 6 == 0
    ]
    for rules in asked:
        with jax.enable_x64(True), use_rules(rules):
            for number in (2, 2.0, 2j):
                # tinygrad has no complex numbers.
                weak = get_rules(rules).weak_arrays and bool(explain(number, rules=rules))
                made = asarray(number, library=library)
                assert made.weak_type == weak, (rules, number)
                assert ("weak_type=True" in repr(made)) == weak
                decided = get_rules(rules).decide(None, (made.key.operand,))
                assert not decided or decided.dtype == made.dtype
            assert not asarray(True, library=library).weak_type
            assert not asarray([1, 2], library=library).weak_type
            assert not asarray(2, "int32", library=library).weak_type
            assert not asarray(np.float32(2), library=library).weak_type
            assert not asarray(np.ones(2), library=library).weak_type


@pytest.mark.parametrize("library", LIBRARIES)
def test_weak_array_promotes_by_its_dtype_under_rules_without_weak_types(library):
    with jax.enable_x64(True):
        with use_rules("jax-x64"):
            weak = asarray(2.0, library=library)
            assert (weak + asarray(np.ones(2, "float16"), library=library)).dtype == "float16"
        with use_rules("numpy"):
            found = weak + asarray(np.ones(2, "float16"), library=library)
            assert (found.dtype, found.weak_type) == ("float64", False)
            assert not ops.negative(weak).weak_type
        with use_rules("jax-x64"):
            assert ops.negative(weak).weak_type


@pytest.mark.parametrize("library", LIBRARIES)
def test_elements_slices_and_conversions_of_a_weak_array_are_weak(library):
    with jax.enable_x64(True), use_rules("jax-x64"):
        weak = asarray(2.0, library=library) * asarray([True, True], library=library)
        strong = weak * asarray(np.ones(2, "float32"), library=library)
        assert weak.shape == (2,)
        assert weak.weak_type
        assert not strong.weak_type
        for array in (weak, strong):
            assert array[0].weak_type == array.weak_type
            assert array[:1].weak_type == array.weak_type
            assert [each.weak_type for each in array] == [array.weak_type] * 2
            assert asarray(array).weak_type == array.weak_type
            assert wrap(array) is array
            assert not array.astype(array.dtype).weak_type
            assert not array.astype("float16").weak_type
        for other in LIBRARIES:
            assert asarray(weak, library=other).weak_type
            assert not asarray(strong, library=other).weak_type


def test_in_place_operator_gives_a_weak_array_the_dtype_of_the_other_operand():
    """A weak array has no fixed dtype that an in-place operator could keep."""
    with use_rules("jax-x64"):
        total = asarray(0.0)
        total += np.ones(2, "float16")
        assert (total.dtype, total.weak_type, total.shape) == ("float16", False, (2,))
        total += 1
        assert (total.dtype, total.weak_type) == ("float16", False)


def test_where_and_clip_follow_the_weak_types_of_jax():
    with jax.enable_x64(True), use_rules("jax-x64"):
        weak, strong = asarray(2.0), wrap(np.ones(2, "float16"))
        assert ops.where(True, weak, 3).weak_type
        assert not ops.where(True, weak, strong).weak_type
        assert ops.where(True, weak, strong).dtype == "float16"
        assert ops.clip(weak, 0, 1).weak_type
        assert not ops.clip(strong, 0, weak).weak_type
        assert ops.clip(strong, 0, weak).dtype == "float16"
