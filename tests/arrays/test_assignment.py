"""Writes into arrays keep the dtype: `+=`, `out=`, `array[...] = value`, `.at` and `full_like`."""

import itertools
import operator
import pickle
import random

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from conformance.assignment_judge import IN_PLACE, set_all
from optional_packages import import_or_skip
from slowly import for_each, mostly_slow, slow
from supremum import PromotionError, explain, namespace, use_rules
from supremum.arrays import Array, ArrayVariable, ComputationError, InPlaceError, RuntimeDtypeError, asarray
from supremum.arrays.wrapped import wrap
from supremum.errors import ArgumentError
from supremum.formats import CATEGORIES, as_format
from supremum.operands import as_operand
from supremum.rules import Storing, get_rules, rule_names

_IN_PLACE = (
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "bitwise_and", "bitwise_left_shift",
)  # fmt: skip
CLASSIC = (
    "bool", "int8", "uint8", "int16", "int32", "int64", "bfloat16", "float16", "float32", "float64", "complex64",
)  # fmt: skip
TRACED = ("bool", "int8", "uint8", "int32", "float16", "float32", "complex64")
LIBRARIES = ("numpy", "torch", "jax")
every_library = pytest.mark.parametrize("library", LIBRARIES)


def _made(values, dtype, library):
    if library == "torch":
        import_or_skip("torch")
    return asarray(np.asarray(values).astype(as_format(dtype).dtype), library=library)


def _set_all(array, value):
    return set_all(array, value) if array.backend.mutable else array.at[...].set(value)


# Without 64 bits


def test_without_x64_assignment_follows_promotion():
    """A value may be written into x, in any way, if `x + value` has the dtype of x."""
    x, one, ones = asarray(np.zeros(3, "float32"), library="jax"), np.float64(1), np.ones(3)
    assert jax.config.jax_enable_x64 is False
    assert (x + one).dtype == (x + ones).dtype == np.float32
    for changed in (x.at[0].set(one), x.at[0].add(one), x.at[0].max(one), x.at[0].subtract(-one)):
        assert (changed.dtype, changed.tolist()) == (np.float32, [1, 0, 0])
    assert x.at[...].set(ones).tolist() == [1, 1, 1]
    y = x
    y += ones
    assert (y.dtype, y.tolist()) == (np.float32, [1, 1, 1])
    full = namespace("jax").full_like(x, np.float64(2))
    assert (full.dtype, full.tolist()) == (np.float32, [2, 2, 2])
    for variable in (ArrayVariable(x), ArrayVariable(np.zeros(3, "float32"), library="jax")):
        variable.assign(ones)
        variable.assign_add(ones)
        variable[0] = one
        assert (variable.dtype, variable.tolist()) == (np.float32, [1, 2, 2])
    assert ArrayVariable(x[0]).assign(one).dtype == np.float32


def test_jax_x32_rules_write_into_numpy_arrays_of_32_and_64_bits():
    with use_rules("jax-x32"):
        narrow, wide = Array(np.zeros(3, "float32")), Array(np.zeros(3))
        narrow[:] = np.ones(3)
        narrow[0] = np.float64(2)
        narrow += np.ones(3)
        wide[:] = np.ones(3)
        wide[0] = np.float32(2)
        assert (narrow.dtype, narrow.tolist()) == (np.float32, [3, 2, 2])
        assert (wide.dtype, wide.tolist()) == (np.float64, [2, 1, 1])
        with pytest.raises(InPlaceError, match="out of range"):
            narrow[0] = np.float64(1e300)


# What is kept and what is refused


@pytest.mark.parametrize("rules", rule_names())
def test_every_refusal_to_store_is_a_promotion_error(rules):
    refused, values = 0, (0.5, 1j, 1000, np.ones(2, "float32"), np.ones(2, "int64"), wrap(np.ones(2, "complex64")))
    writes = (
        *map(IN_PLACE.get, _IN_PLACE),
        set_all,
        lambda x, value: np.add(x, value, out=x),
        lambda x, value: np.add.at(x, [0, 1], value),
    )
    with use_rules(rules), np.errstate(all="ignore"):
        for dtype, write, value in itertools.product(("int8", "float16"), writes, values):
            x = wrap(np.ones(2, dtype))
            try:
                write(x, value)
            except (PromotionError, RuntimeDtypeError):
                refused += 1
                assert x.tolist() == [1, 1]
    assert issubclass(InPlaceError, PromotionError)
    assert refused > 5


READ_ONLY = {
    "operator": lambda x: operator.iadd(x, 1),
    "element": lambda x: operator.setitem(x, 0, 1),
    "out": lambda x: np.add(x, 1, out=x),
    "out, of the library": lambda x: np.add(x, 1, out=x.unwrap()),
    "out, of a reduction": lambda x: np.cumsum(x, out=x),
}


@pytest.mark.parametrize("write", READ_ONLY.values(), ids=READ_ONLY)
def test_writes_into_read_only_memory_raise_our_error_and_change_nothing(write):
    x = wrap(np.ones(2))
    x.unwrap().flags.writeable = False
    with pytest.raises(ComputationError, match=r"^[\w.]+\(float64\[2\].*\) failed in numpy: .*read-only"):
        write(x)
    assert x.tolist() == [1, 1]


@pytest.mark.one_in(2)
@every_library
@pytest.mark.parametrize("rules", ["numpy", "torch"])
def test_wider_results_of_the_same_kind_are_rounded_once_and_stored(rules, library):
    with use_rules(rules), jax.enable_x64(True):
        array = before = _made([1, 2], "float32", library)
        array += np.full(2, 0.1)
        # Computed in float64 and rounded once.
        assert (array.dtype, array.tolist()) == (np.float32, np.float32([1 + 0.1, 2 + 0.1]).tolist())
        assert (array is before) == before.backend.mutable
        ints = _made([1, 2], "int8", library)
        ints += np.array([100, 1])
        assert (ints.dtype, ints.tolist()) == (np.int8, [101, 3])
        assert _set_all(array, np.full(2, 0.1)).tolist() == [np.float32(0.1)] * 2
        assert _set_all(ints, np.array([5, -128])).tolist() == [5, -128]


@every_library
@pytest.mark.parametrize("rules", ["numpy", "torch", "keras", "paddle"])
def test_assignments_that_lose_information_raise(rules, library):
    with use_rules(rules), jax.enable_x64(True):
        for dtype, values in {
            "int8": (np.array([1.0, 2.0]), 1.5, 1j, 128, -129, np.array([1, 128]), np.array([1j, 0])),
            "uint8": (np.array([1, -1]), -1, 256, np.float32(1)),
            "float32": (1j, np.array([1j, 0]), 1e39, np.array([0, 1e39])),
            "float16": (np.array([0, 65536], "int64"), 1e5),
            "bool": (2, np.array([0, 1]), 1.0),
        }.items():
            array = _made([1, 0], dtype, library)
            # Later calls find what this one prepares.
            _set_all(array, {"bool": True, "int8": 1, "uint8": 1}.get(dtype, 0.5))
            array = _made([1, 0], dtype, library)
            for value in values:
                with pytest.raises(InPlaceError):
                    _set_all(array, value)
            assert array.tolist() == [1, 0]
        array = _made([1, 0], "int8", library)
        for value in (np.array([1.0, 2.0]), 1.5, np.array([1j, 0])):
            with pytest.raises((PromotionError, RuntimeDtypeError)):
                array += value
        assert array.tolist() == [1, 0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns about the sum that is then refused
@every_library
@pytest.mark.parametrize("rules", ["numpy", "torch"])
def test_in_place_results_out_of_range_raise(rules, library):
    with use_rules(rules), jax.enable_x64(True):
        for dtype, value in (
            ("int8", np.array([1, 127])),
            ("float32", np.array([1, 1e300])),
            ("float16", np.float32([7e4] * 2)),
        ):
            array = _made([1, 1], dtype, library)
            with pytest.raises(InPlaceError, match="out of range") as error:
                array += value
            assert error.value.fix is None
            assert "assign the result to a new name" in str(error.value)
            assert array.tolist() == [1, 1]


def test_in_place_error_has_a_decision_a_working_fix_and_can_be_pickled():
    a, b = wrap(np.ones(2, "int8")), np.ones(2, "float32")
    with use_rules("torch"):
        with pytest.raises(InPlaceError) as error:
            a += b
        decision = error.value.decision
        assert str(decision) == str(explain(a, b, operation="add", into=a))
        assert not decision
        a += eval(error.value.fix.expressions()["b"])
        assert a.tolist() == [2, 2]
        again = pickle.loads(pickle.dumps(error.value))
        assert (type(again), str(again)) == (InPlaceError, str(error.value))


def test_refused_assignment_of_a_fraction_to_an_integer_has_no_fix():
    for rules in ("numpy", "torch", "jax-x64", "paddle"):
        decision = explain(1.5, operation="assign", into="int8", rules=rules)
        assert (bool(decision), decision.fix) == (False, None)


def test_explain_with_into_describes_the_stored_result():
    decision = explain("float32", "float64", operation="add", into="float32", rules="numpy")
    assert (decision.dtype, decision.stored.source, decision.stored.lossy) == (np.float32, np.float64, True)
    assert [cast.target for cast in decision.casts] == [np.float64] * 2
    kept = explain("float32", "float32", operation="add", into="float32", rules="numpy")
    assert (kept.dtype, kept.stored) == (np.float32, None)
    assert explain("float32", "float64", operation="less", into="float16", rules="torch").dtype == np.float16
    assert explain("int8", operation="sqrt", into="float64", rules="numpy").stored.source == np.float16
    for call in (lambda: explain("int8", operation="assign"), lambda: explain("int8", operation="assign", into=3)):
        with pytest.raises(ArgumentError, match="into="):
            call()


@for_each("rules", rule_names()[1:])
def test_results_of_the_same_dtype_are_always_stored(rules):
    """In-place operators rely on this and skip the check."""
    compared, decide = 0, get_rules(rules).decide
    operands = [as_operand(name) for name in CLASSIC]
    for name, (a, b) in itertools.product(("add", "divide", "bitwise_and"), itertools.product(operands, repeat=2)):
        plain = decide(name, (a, b))
        if plain and plain.dtype == a.dtype:
            stored = decide(name, (a, b), a)
            assert (bool(stored), stored.stored) == (True, None), (name, a, b)
            compared += 1
    assert compared > 10
    assert all(bool(decide("assign", (a,), a)) == bool(decide(None, (a,))) for a in operands)


@for_each("rules", rule_names()[1:])
def test_values_of_a_higher_category_are_never_stored(rules):
    operands = [as_operand(name) for name in CLASSIC]
    for how, a, b in itertools.product((None, *Storing), operands, operands):
        if CATEGORIES.index(b.category) > CATEGORIES.index(a.category):
            assert not get_rules(rules).decide("assign", [b], a, how), (how, a, b)


# out=


def test_numpy_functions_write_into_out_as_the_rules_decide():
    a, b = wrap(np.array([1, 2], "float32")), np.array([0.5, 0.25])
    with use_rules("numpy"):
        plain, ours = np.zeros(2, "float32"), wrap(np.zeros(2, "float16"))
        assert np.add(a, b, out=plain) is plain
        assert np.add(a, b, out=ours) is ours
        assert plain.tolist() == ours.tolist() == [1.5, 2.25]
        truth = np.zeros(2, "int8")
        np.less(a, b, out=truth)
        assert truth.tolist() == [0, 0]
        for wrong in (np.zeros(2, "int32"), np.zeros(2, bool)):
            with pytest.raises(InPlaceError, match="into="):
                np.add(a, b, out=wrong)
        with pytest.raises(InPlaceError, match="out of range"):
            np.multiply(a, 1e5, out=np.zeros(2, "float16"))


# Traced by JAX


@pytest.mark.parametrize("rules", mostly_slow(["numpy", "torch", "jax-x64", "keras"], "torch"))
@pytest.mark.parametrize("name", mostly_slow(["add", "assign"], "assign"))
def test_jitted_writes_agree_with_eager_writes_except_for_wider_integers(name, rules):
    """Traced values are unknown, so wider integers are refused under `jit`, where frameworks would wrap them."""

    def write(array, value):
        return (array.at[...].set(value) if name == "assign" else IN_PLACE[name](array, value)).unwrap()

    def outcome(run, *operands):
        try:
            return run(*operands).dtype
        except (PromotionError, RuntimeDtypeError):
            return None

    different = set()
    with use_rules(rules), jax.enable_x64(True):
        for a, b in itertools.product(TRACED, repeat=2):
            array, value = wrap(jnp.ones(2, a)), wrap(jnp.ones(2, b))
            eager, traced = outcome(write, array, value), outcome(jax.eval_shape, write, array, value)
            assert eager in (None, a)
            if eager != traced:
                different.add((a, b, traced))
    narrowed = {(a, b, None) for a, b, _ in different if not as_format(a).holds(as_format(b))}
    assert different == narrowed
    assert bool(different) == (rules != "jax-x64")
    assert all(as_format(a).category == as_format(b).category == "integer" for a, b, _ in different)


# Random programs, compared with NumPy

VALUES = (0, 1, 2, 3, 7, 100)
WRITE = IN_PLACE | {"assign": set_all}
OFTEN = ("int8", "uint8", "int32", "int64", "float16", "float32", "float64", "bool", "complex64")


def _exact(name, target, value):
    """Return the result of a step in a new array."""
    if name == "assign":
        return np.broadcast_to(np.asarray(value), target.shape)
    return getattr(np, {"bitwise_left_shift": "left_shift"}.get(name, name))(target, value)


def _loses(exact, dtype):
    """Return whether a dtype cannot hold values: it has a lower category, or values wrap around or become infinite."""
    row, source = as_format(dtype), as_format(exact.dtype)
    if CATEGORIES.index(source.category) > CATEGORIES.index(row.category):
        return True
    cast = exact.astype(dtype)
    if row.category == "integer":
        return not np.array_equal(cast.astype(exact.dtype), exact) or not np.array_equal(np.sign(cast), np.sign(exact))
    return bool(np.any(np.isfinite(exact) & ~np.isfinite(cast)))


def _steps(seed):
    """Return dtypes and values of four arrays, and steps `(operation, target, number or None, other array)`."""
    draw = random.Random(seed)
    arrays = [(draw.choice(OFTEN), [draw.choice(VALUES) for _ in range(2)], draw.random() < 0.2) for _ in range(4)]
    names = [*_IN_PLACE, "assign", "assign", "add", "multiply"]
    steps = [
        (
            draw.choice(names),
            draw.randrange(4),
            draw.choice([0, 1, 2, 3, 2, 0.5, 1j, 1000]) if draw.random() < 0.3 else None,
            draw.randrange(4),
        )
        for _ in range(12)
    ]
    return arrays, steps


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("seeds", [range(60), slow(range(60, 1500))])
def test_random_programs_agree_with_numpy_unless_numpy_loses_information(seeds):
    stored = refused = lost = 0
    with use_rules("numpy"):
        for seed in seeds:
            arrays, steps = _steps(seed)
            theirs = [np.array(values, dtype)[: 1 if single else 2] for dtype, values, single in arrays]
            ours = [wrap(each.copy()) for each in theirs]
            for name, i, number, j in steps:
                before = theirs[i].copy()
                value = theirs[j] if number is None else number
                try:
                    WRITE[name](theirs[i], value)
                    happened = True
                except (TypeError, OverflowError, ValueError):
                    theirs[i][...] = before
                    happened = False
                try:
                    WRITE[name](ours[i], ours[j] if number is None else number)
                    assert happened, (seed, name, before, value)
                    assert theirs[i].tobytes() == ours[i].unwrap().tobytes(), (seed, name, before, value, ours[i])
                    stored += 1
                except (PromotionError, ArgumentError, ValueError):
                    assert ours[i].unwrap().tobytes() == before.tobytes()
                    if happened:
                        assert _loses(_exact(name, before, value), before.dtype), (seed, name, before, value)
                        theirs[i][...] = before
                        lost += 1
                    refused += 1
    assert min(stored, refused, lost) > len(seeds) / 4


def test_writes_into_arrays_of_ml_dtypes_formats_keep_the_dtype():
    with use_rules("numpy"):
        array = wrap(np.ones(2, ml_dtypes.bfloat16))
        array += np.full(2, 0.5, "float32")
        array[0] = np.float64(2.5)
        assert (array.dtype, array.tolist()) == (ml_dtypes.bfloat16, [2.5, 1.5])
        with pytest.raises(InPlaceError, match="fraction"):
            wrap(np.ones(2, ml_dtypes.int4))[:] = array
