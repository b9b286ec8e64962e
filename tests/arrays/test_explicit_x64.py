"""Arrays of JAX with x64 off and `jax_explicit_x64_dtypes="allow"`, also while flags change."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import Array
from supremum.arrays.errors import NarrowingError, RuntimeDtypeError


def explicit(mode):
    jax.config.update("jax_explicit_x64_dtypes", mode)


@pytest.fixture(autouse=True)
def _flags():
    before = jax.config.jax_explicit_x64_dtypes
    with jax.enable_x64(False):
        explicit("allow")
        yield
    jax.config.update("jax_explicit_x64_dtypes", before)


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
    whole = Array(jnp.zeros(1, "int32"))
    with supremum.use_rules("numpy"):
        assert (whole + Array(jnp.full(1, 0.1, "float32"))).dtype == "float64"
        assert np.asarray((whole + np.array([0.1])).unwrap())[0] == 0.1


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
            str((supremum.asarray(2) * 2.5).dtype),
            str(supremum.result_type("int64", "int8")),
            str(supremum.result_type(wide, narrow)),
        ]

    # NumPy's arrays have 64 bits under any flags of JAX.
    allowed = ["float64", "int64", "int64", "float64", "float64", "int64", "float64"]
    off = ["float32", "int64", "int64", "float32", "float64", "int32", "float32"]
    for _ in range(2):
        assert all_dtypes() == allowed
        assert (wide + 0.1).dtype == (wide + wide).dtype == "float64"
        explicit("error")
        assert all_dtypes() == off
        assert supremum.asarray(1.0, library="jax").dtype == "float32"
        with supremum.use_rules("numpy"), pytest.raises(RuntimeDtypeError, match="x64 is off"):
            wide + 0.1
        explicit("warn")
        assert all_dtypes() == off
        with jax.enable_x64(True):
            assert all_dtypes() == allowed
            assert np.asarray((wide + 0.1).unwrap())[0] == 1.1
            assert supremum.asarray(1.0, library="jax").dtype == "float64"
        explicit("allow")
    assert traced == ["jax-explicit-x64", "jax-x32", "jax-x32", "jax-x64"]


def test_integers_beyond_32_bits_raise_unless_64_bits_are_allowed():
    explicit("error")
    with pytest.raises(NarrowingError):
        Array(jnp.ones(1, "int32")) + np.array([2**40])
    explicit("allow")
    assert (Array(jnp.ones(1, "int32")) + np.array([2**40])).tolist() == [2**40 + 1]
