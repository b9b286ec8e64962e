"""Arrays of JAX with x64 off and `jax_explicit_x64_dtypes="allow"`, compared with JAX, also while flags change."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from slowly import for_each
from supremum import Array, ops
from supremum.arrays.errors import NarrowingError, RuntimeDtypeError
from supremum.operations import OPERATIONS

WIDE = ("int64", "uint64", "float64", "complex128")
NARROW = ("bool", "int8", "uint32", "float32")
BINARY = ("add", "divide", "equal", "atan2", "bitwise_and")
UNARY = ("negative", "sin", "abs", "isfinite", "round")
NAMES = {"atan2": "arctan2"}
COMPILED = ("add", "sin")
EAGER = {"int64", "float64", "uint32", "float32", "weak int", "1.0"}  # few, because JAX compiles each pair


def explicit(mode):
    jax.config.update("jax_explicit_x64_dtypes", mode)


@pytest.fixture(autouse=True)
def _flags():
    before = jax.config.jax_explicit_x64_dtypes
    with jax.enable_x64(False):
        explicit("allow")
        yield
    jax.config.update("jax_explicit_x64_dtypes", before)


def _function(name):
    return getattr(jnp, NAMES.get(name, name))


def _ours(name, *operands):
    try:
        result = getattr(ops, name)(*(Array(each) if isinstance(each, jax.Array) else each for each in operands))
    except (supremum.PromotionError, RuntimeDtypeError):
        return None
    return str(result.dtype), result.weak_type and result.dtype != bool


def _theirs(name, *operands):
    try:
        result = _function(name)(*operands)
    except (TypeError, ValueError):
        return None
    return str(result.dtype), result.weak_type and result.dtype != bool


@for_each("name", [*BINARY, *UNARY], one_in=12, one_slow_in=3)
def test_traced_and_eager_dtypes_agree_with_jax(name):
    arrays = {each: jnp.ones((1,), each) for each in (*WIDE, *NARROW)}
    assert {str(value.dtype) for value in arrays.values()} == {*arrays}
    arrays |= {"weak int": jnp.asarray(1), "weak float": jnp.asarray(1.0)}
    numbers, answers = {"1": 1, "1.0": 1.0}, {}

    def ask(arrays, only=None):
        values = arrays | numbers
        for call in itertools.product(values, repeat=OPERATIONS[name].arity):
            if not numbers.keys() >= {*call} and (only is None or only.issuperset(call)):
                operands = [values[each] for each in call]
                answers[call, only is None] = (_ours(name, *operands), _theirs(name, *operands))
        return 0

    jax.eval_shape(ask, arrays)  # one trace of all calls takes a tenth of the time of one for each call
    if name in COMPILED:
        ask(arrays, EAGER)
    different = {call: said for call, said in answers.items() if said[0] != said[1]}
    assert different == {}


def test_python_numbers_and_numpy_arrays_keep_64_bit_precision():
    wide, whole = Array(jnp.zeros(1, "float64")), Array(jnp.zeros(1, "int64"))
    assert np.asarray((wide + np.array([0.1])).unwrap())[0] == 0.1
    assert np.asarray(jax.jit(lambda a: (a + np.array([0.1])).unwrap())(wide))[0] == 0.1
    assert np.asarray((wide + 0.1).unwrap())[0] == 0.1
    assert np.asarray(jax.jit(lambda a: (a + 0.1).unwrap())(wide))[0] == 0.1
    assert np.asarray((whole + np.array([2**40])).unwrap())[0] == 2**40
    # JAX itself narrows NumPy's arrays to 32 bits, and Python numbers too unless it compiles.
    assert np.asarray(whole.unwrap() + np.array([2**40]))[0] == 0
    assert np.asarray(wide.unwrap() + 0.1)[0] == np.float32(0.1)
    with pytest.raises(supremum.ScalarOverflowError, match="does not fit int32"):
        whole + 2**40


def test_arrays_are_created_and_cast_in_64_bits():
    assert supremum.namespace("jax").zeros(3, dtype="float64").dtype == "float64"
    assert supremum.namespace("jax").zeros(3).dtype == "float32"
    for copy in (None, True):
        assert supremum.namespace("jax").asarray([0.1], dtype="float64", copy=copy).tolist() == [0.1]
        assert supremum.namespace("jax").asarray(np.array([0.1]), copy=copy).tolist() == [0.1]
    assert supremum.namespace("jax").asarray([2**40], dtype="int64").tolist() == [2**40]
    assert Array(jnp.ones(1, "int8")).astype("float64").dtype == "float64"
    total = jax.jit(lambda x: (Array(x).astype("float64") + 0.1).unwrap())(jnp.zeros(1, "float32"))
    assert (total.dtype, float(total[0])) == ("float64", 0.1)


def test_numpy_rules_give_64_bit_results():
    with supremum.use_rules("numpy"):
        total = Array(jnp.ones(1, "int32")) + Array(jnp.full(1, 0.1, "float32"))
    assert total.dtype == "float64"
    with supremum.use_rules("numpy"):
        assert np.asarray((Array(jnp.zeros(1, "int32")) + np.array([0.1])).unwrap())[0] == 0.1


def test_results_follow_each_change_of_the_flags():
    narrow, numbers = Array(jnp.ones(1, "float32")), np.full(1, 0.1)
    wide = Array(jnp.ones(1, "float64"))
    on_numpy = Array(np.ones(1, "int64"))
    traced = []

    @jax.jit
    def jitted(a):
        traced.append(supremum.get_rules().name)
        return (Array(a) + numbers).unwrap()

    def all_dtypes():
        return [
            str((narrow + numbers).dtype),
            str((on_numpy + 1).dtype),
            str((on_numpy + on_numpy).dtype),
            str(jitted(narrow.unwrap()).dtype),
            str(supremum.result_type("int64", "int8")),
            str(supremum.result_type(wide, narrow)),
        ]

    # NumPy's arrays have 64 bits under any flags of JAX.
    allowed = ["float64", "int64", "int64", "float64", "int64", "float64"]
    off = ["float32", "int64", "int64", "float32", "int32", "float32"]
    for _ in range(2):
        assert all_dtypes() == allowed
        assert (wide + 0.1).dtype == (wide + wide).dtype == "float64"
        explicit("error")
        assert all_dtypes() == off
        with supremum.use_rules("numpy"), pytest.raises(RuntimeDtypeError, match="x64 is off"):
            wide + 0.1
        explicit("warn")
        assert all_dtypes() == off
        with jax.enable_x64(True):
            assert all_dtypes() == allowed
            assert np.asarray((wide + 0.1).unwrap())[0] == 1.1
        explicit("allow")
    assert traced == ["jax-explicit-x64", "jax-x32", "jax-x32", "jax-x64"]


def test_integers_beyond_32_bits_raise_unless_64_bits_are_allowed():
    explicit("error")
    with pytest.raises(NarrowingError):
        Array(jnp.ones(1, "int32")) + np.array([2**40])
    explicit("allow")
    assert (Array(jnp.ones(1, "int32")) + np.array([2**40])).tolist() == [2**40 + 1]
