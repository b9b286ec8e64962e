"""Weak arrays of every library promote as in JAX; rules without weak types create no weak arrays."""

import importlib.util
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arrays import calls
from arrays.calls import BINARY, RULE_SETS, UNARY
from conformance.departures import departures_of_version
from supremum import PromotionError, explain, get_rules, use_rules
from supremum.arrays import RuntimeDtypeError, asarray, ops
from supremum.arrays.functions.losses import LOSSES
from supremum.arrays.wrapped import wrap

LIBRARIES = [name for name in ("numpy", "torch", "jax") if name == "numpy" or importlib.util.find_spec(name)]
STRONG = ("bool", "uint8", "int8", "int64", "bfloat16", "float16", "float32", "float64", "complex64")
NUMBERS = {"int*": 2, "float*": 2.0, "complex*": 2j}
JAX_REFUSES = (TypeError, ValueError, NotImplementedError)


def _operands(library, shape=(2,)):
    """Return strong arrays by dtype, and weak arrays by the names of their kinds."""
    strong = {name: asarray(np.ones(shape, name), library=library) for name in STRONG}
    return strong | {name: asarray(number, library=library) for name, number in NUMBERS.items()}


def _plain(name):
    if name == "where":
        return lambda a, b: jnp.where(True, a, b)
    return getattr(jnp, name)


def _jax_answers(shape):
    """Return the dtype and weak flag of `jax.numpy`'s results, by operation and operands, from one trace."""
    answers = {}

    def ask(strong, weak):
        operands = strong | weak
        for name in (*BINARY, *UNARY):
            if name in LOSSES:
                continue
            for call in itertools.product(operands, repeat=2 if name in BINARY else 1):
                try:
                    result = _plain(name)(*(operands[each] for each in call))
                except JAX_REFUSES:
                    continue
                answers[name, *call] = (np.dtype(result.dtype), result.weak_type and result.dtype != bool)
        return 0

    jax.eval_shape(ask, {name: jax.ShapeDtypeStruct(shape, np.dtype(name)) for name in STRONG}, NUMBERS)
    return answers


@pytest.fixture(scope="module", name="answers")
def _answers():
    with jax.enable_x64(True):
        return _jax_answers((2,))


def _departs(name, call, ours, theirs):
    """Return whether a difference is listed for the installed version of JAX."""
    written = [f"{dtype}{'*' * weak}" for dtype, weak in ((ours.dtype, ours.weak_type), theirs)]
    return any(
        row.covers(name, row.form, *(*call, "")[:2], *written)
        for row in departures_of_version("jax", jax.__version_info__)
    )


@pytest.mark.one_slow_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("library", [name for name in LIBRARIES if name != "jax"])
def test_dtypes_and_weak_flags_agree_with_jax_on_every_library(library, answers):
    different, lacking = {}, 0
    with jax.enable_x64(True), use_rules("jax-x64"), np.errstate(all="ignore"):
        operands = _operands(library)
        for (name, *call), theirs in answers.items():
            try:
                result = calls.function_of(name)(*(operands[each] for each in call))
            except RuntimeDtypeError:
                lacking += 1  # no kernel; the conformance tests compare the decision
                continue
            except PromotionError:
                different[name, *call] = ("refused", theirs)
                continue
            if (result.dtype, result.weak_type) != theirs and not _departs(name, call, result, theirs):
                different[name, *call] = ((result.dtype, result.weak_type), theirs)
            if ("weak_type=True" in repr(result)) != result.weak_type:
                different[name, *call] = repr(result)
    assert different == {}
    assert len(answers) > 3000
    assert lacking < len(answers) / 8


@pytest.mark.slow
def test_eager_jax_arrays_carry_the_weak_flag_of_jax(answers):
    """The flag is on the raw array of JAX, not only on ours."""
    with jax.enable_x64(True), use_rules("jax-x64"):
        operands = _operands("jax")
        for name, call in itertools.product(
            ("add", "less"), itertools.product(("int*", "float*", "int8", "float32"), repeat=2)
        ):
            result = calls.function_of(name)(*(operands[each] for each in call))
            assert (result.dtype, result.weak_type) == answers[name, *call]
            assert (result.unwrap().weak_type and name != "less") == result.weak_type


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
