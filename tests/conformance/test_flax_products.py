"""Products, convolutions and embeddings beside Flax's, over every dtype of inputs, of parameters and asked for."""

import warnings

import flax.linen as linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from conformance.flax_judge import CELLS, differences, random_like
from supremum.nn.functional.convolution import conv, conv_transpose
from supremum.nn.functional.dropout import dropout
from supremum.nn.functional.embedding import attend, embedding
from supremum.nn.functional.pooling import avg_pool, max_pool, min_pool
from supremum.nn.functional.products import dense, dense_general, einsum

FOLLOWED = [cell for cell in CELLS if not cell.truncates_in_flax]
TRUNCATED = [cell for cell in CELLS if cell.truncates_in_flax]

INDICES = np.array([2, 0, 2], np.int32)


def of_flax(module, **options):
    """A layer of Flax as the judge takes it."""

    def layer(params, x, dtype):
        return module(dtype=dtype, **options).apply({"params": params}, x)

    return layer


def with_parameters(form, *args, **options):
    """A functional form as the judge takes it."""

    def layer(params, x, dtype):
        return form(*args, x, params["kernel"], params.get("bias"), dtype=dtype, **options)

    return layer


def parameters(kernel, bias):
    return {"kernel": kernel, "bias": bias}


EQUATION = "abc,cde->abde"

PAIRS = {
    "dense": (
        with_parameters(dense), of_flax(linen.Dense, features=2), (2, 3), parameters((3, 2), (2,)),
    ),
    "dense_general": (
        with_parameters(dense_general, axes=(-2, -1), batch_axes=0),
        of_flax(linen.DenseGeneral, features=2, axis=(-2, -1), batch_dims=(0,)),
        (2, 2, 2),
        parameters((2, 2, 2, 2), (2, 2)),
    ),
    "einsum": (
        with_parameters(einsum, EQUATION),
        of_flax(linen.Einsum, shape=(3, 2, 2), einsum_str=EQUATION),
        (1, 2, 3),
        parameters((3, 2, 2), (2, 2)),
    ),
    "conv": (
        with_parameters(conv, strides=2, groups=2, padding=2, input_dilation=2, kernel_dilation=2),
        of_flax(
            linen.Conv, features=2, kernel_size=(2,), strides=2, feature_group_count=2, padding=2, input_dilation=2,
            kernel_dilation=2,
        ),
        (1, 3, 2),
        parameters((2, 1, 2), (2,)),
    ),
    "conv_transpose": (
        with_parameters(conv_transpose, strides=(2,)),
        of_flax(linen.ConvTranspose, features=2, kernel_size=(3,), strides=(2,)),
        (1, 2, 2),
        parameters((3, 2, 2), (2,)),
    ),
    "embedding": (
        lambda table, _, dtype: embedding(INDICES, table, dtype=dtype),
        lambda table, _, dtype: linen.Embed(3, 2, dtype=dtype).apply({"params": {"embedding": table}}, INDICES),
        (),
        (3, 2),
    ),
    "attend": (
        lambda table, x, dtype: attend(x, table, dtype=dtype),
        lambda table, x, dtype: linen.Embed(3, 2, dtype=dtype).apply(
            {"params": {"embedding": table}}, x, method="attend"
        ),
        (2, 2),
        (3, 2),
    ),
}  # fmt: skip


# Gradients of the others are of the same two operations, `dot_general` and `conv_general_dilated`: they are compared
# where all dtypes are equal, and over all cells for one form of each operation.
GRADIENTS_OVER_ALL_CELLS = ("dense", "conv", "embedding")
EQUAL = [cell for cell in FOLLOWED if cell.inputs == cell.params and cell.asked is None]


@pytest.mark.parametrize("name", PAIRS)
def test_outputs_gradients_and_dtypes_are_those_of_flax(name):
    ours, theirs, inputs, params = PAIRS[name]
    everywhere = name in GRADIENTS_OVER_ALL_CELLS
    with jax.enable_x64(True):
        assert list(differences(ours, theirs, inputs, params, cells=FOLLOWED, gradients=everywhere)) == []
        if not everywhere:
            assert list(differences(ours, theirs, inputs, params, cells=EQUAL)) == []


@pytest.mark.parametrize("name", PAIRS)
def test_what_flax_truncates_is_computed_in_the_complex_dtype(name):
    """Flax drops imaginary parts where a real dtype is asked for; ours meet it in a complex one."""
    ours, theirs, inputs, params = PAIRS[name]
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        for cell in TRUNCATED:
            if name == "embedding" and cell.params != "complex64":
                continue  # its inputs are integers: nothing complex takes part
            wide = "complex128" if cell.asked == "float64" else "complex64"
            given = random_like(inputs, cell.inputs, 1), random_like(params, cell.params, 2)
            got = ours(given[1], given[0], cell.asked)
            want = ours(given[1], given[0], wide)
            assert (got.dtype, theirs(given[1], given[0], cell.asked).dtype) == (wide, cell.asked)
            np.testing.assert_array_equal(got, want)
            assert np.abs(np.asarray(want).imag).max() > 0


POOLS = {
    "max_pool": (max_pool, linen.max_pool),
    "min_pool": (min_pool, nnx.min_pool),
    "avg_pool": (avg_pool, linen.avg_pool),
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_pooling_has_the_dtype_and_values_of_flax(name, dtype):
    ours, theirs = POOLS[name]
    with jax.enable_x64(True):
        x = random_like((2, 5, 4, 2), dtype)
        got = ours(x, (2, 3), strides=(2, 1), padding="SAME")
        want = theirs(x, (2, 3), strides=(2, 1), padding="SAME")
        assert got.dtype == want.dtype == dtype
        rtol = 4 * float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(np.asarray(got, "float64"), np.asarray(want, "float64"), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_dropout_has_the_dtype_of_flax(dtype):
    with jax.enable_x64(True):
        x = random_like((4, 3), dtype)
        key = jax.random.key(0)
        want = linen.Dropout(0.5, deterministic=False).apply({}, x, rngs={"dropout": key})
        got = dropout(key, x, 0.5)
        assert got.dtype == want.dtype == dtype
        assert set(np.unique(np.asarray(got) / np.asarray(x))) <= {0, 2}
