"""0-d arrays under the rules of NumPy 1.26, which depend on their values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import Array, PromotionError, count_conversions, ops

DTYPES = ("int8", "uint8", "int32", "float16", "float32", "float64")
VALUES = [
    np.array(5),
    np.array(300),
    np.array(-1),
    np.array(2**40),
    np.array(1.5),
    np.array(1e39),
    np.array(7, "uint8"),
]


@pytest.fixture(autouse=True)
def _rules():
    with supremum.use_rules("numpy-legacy"):
        yield


def test_operators_decide_by_the_values_of_0d_arrays():
    for dtype in DTYPES:
        array = np.ones(2, dtype)
        for value in [*VALUES, *VALUES]:  # twice, because the cache must not mix up values
            expected = supremum.result_type(array, value)
            assert (Array(array) + Array(value)).dtype == expected, (dtype, value)
            assert (value + Array(array)).dtype == expected
            assert ops.multiply(Array(array), value[()]).dtype == expected


def test_values_are_read_at_every_call():
    array, scalar = Array(np.ones(2, "int8")), np.array(5)
    assert (array + scalar).dtype == "int8"
    scalar[()] = 300
    assert (array + scalar).dtype == "int16"
    wrapped = Array(scalar)
    wrapped[()] = 5
    assert (array + wrapped).dtype == "int8"
    with count_conversions():
        assert (array + np.array(300)).dtype == "int16"
        assert (array + np.array(5)).dtype == "int8"


def test_0d_arrays_without_an_array_promote_by_their_dtypes():
    assert (Array(np.array(5)) + Array(np.array(3, "int8"))).dtype == "int64"
    assert (Array(np.array(5)) + 1.5).dtype == "float64"


def test_values_of_jax_arrays_are_not_read():
    array = Array(jnp.ones(2, "int8"))
    for call in (lambda x: array + Array(x), jax.jit(lambda x: (array + Array(x)).unwrap())):
        with pytest.raises(PromotionError, match=r"promotes by the value of int32\[\], which is not known here"):
            call(jnp.asarray(5, "int32"))
    # Here no value could change the result.
    assert (Array(jnp.ones(2, "float32")) + Array(jnp.asarray(5, "int8"))).dtype == "float32"
    # The value of a NumPy array is known, also under tracing.
    assert (array + np.array(5)).dtype == "int8"
    assert jax.jit(lambda x: (Array(x) + np.array(300)).unwrap())(array.unwrap()).dtype == "int16"


def test_other_rules_ignore_the_value_in_alternating_calls():
    array, scalar = Array(np.ones(2, "int8")), np.array(5)
    with supremum.use_rules("numpy"):
        assert (array + scalar).dtype == "int64"
    assert (array + scalar).dtype == "int8"
    with supremum.use_rules("numpy"):
        assert (array + scalar).dtype == "int64"
