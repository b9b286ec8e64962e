"""Products, convolutions and embeddings compared with Flax's, for all dtypes of inputs, parameters and computation."""

import functools
import itertools

import flax.linen as linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conformance.flax_judge import (
    EXACT,
    TRUNCATED,
    assert_imaginary_parts_are_kept,
    differences_with_some_gradients,
    gradients_everywhere,
    random_like,
)
from slowly import for_each
from supremum import nn
from supremum.errors import ArgumentError
from supremum.nn.functional.convolution import conv, conv_transpose
from supremum.nn.functional.dropout import dropout
from supremum.nn.functional.embedding import attend, embedding
from supremum.nn.functional.pooling import avg_pool, max_pool
from supremum.nn.functional.products import dense, dense_general, einsum
from supremum.nn.layers.convolution import Conv, ConvTranspose
from supremum.nn.layers.embedding import Embedding
from supremum.nn.layers.products import Dense, DenseGeneral, Einsum

INDICES = np.array([1, 0], np.int32)


def of_flax(module, **options):
    """Wrap a Flax layer as a function of parameters, inputs and dtype."""

    def layer(params, x, dtype):
        return module(dtype=dtype, **options).apply({"params": params}, x)

    return layer


def with_parameters(form, *args, **options):
    """Wrap a functional form as a function of parameters, inputs and dtype."""

    def layer(params, x, dtype):
        return form(*args, x, params["kernel"], params.get("bias"), dtype=dtype, **options)

    return layer


def parameters(kernel, bias):
    return {"kernel": kernel, "bias": bias}


EQUATION = "abc,bcd->abd"

# Few shapes, so that the compiled operations are shared.
PAIRS = {
    "dense": (with_parameters(dense), of_flax(linen.Dense, features=2), (2, 2), parameters((2, 2), (2,))),
    "dense_general": (with_parameters(dense_general, axes=-1, batch_axes=0),
     of_flax(linen.DenseGeneral, features=2, axis=-1, batch_dims=(0,)), (1, 2, 2), parameters((1, 2, 2), (1, 2))),
    "einsum": (with_parameters(einsum, EQUATION), of_flax(linen.Einsum, shape=(2, 2, 2), einsum_str=EQUATION),
     (1, 2, 2), parameters((2, 2, 2), (2, 2))),
    "conv": (
        with_parameters(conv, strides=2, groups=2, padding=((0, 3),), input_dilation=2, kernel_dilation=2),
        of_flax(
            linen.Conv, features=2, kernel_size=(2,), strides=2, feature_group_count=2, padding=((0, 3),),
            input_dilation=2, kernel_dilation=2,
        ),
        (1, 2, 2),
        parameters((2, 1, 2), (2,)),
    ),
    "conv_transpose": (with_parameters(conv_transpose, strides=2, padding=0),
     of_flax(linen.ConvTranspose, features=2, kernel_size=(2,), strides=(2,), padding=0), (1, 2, 2),
     parameters((2, 2, 2), (2,))),
    "embedding": (lambda table, _, dtype: embedding(INDICES, table, dtype=dtype),
     lambda table, _, dtype: linen.Embed(2, 2, dtype=dtype).apply({"params": {"embedding": table}}, INDICES), (),
     (2, 2)),
    "attend": (
        lambda table, x, dtype: attend(x, table, dtype=dtype),
        lambda table, x, dtype: linen.Embed(2, 2, dtype=dtype).apply(
            {"params": {"embedding": table}}, x, method="attend"
        ),
        (2, 2),
        (2, 2),
    ),
}  # fmt: skip


# Gradients take most of the time. They are compared in all cells for `dense`. The other functions cast their operands
# in the same way, so their gradients are compared only where all dtypes are equal.
GRADIENTS_OVER_ALL_CELLS = ("dense",)
EQUAL = [cell for cell in EXACT if cell.inputs == cell.params and cell.asked is None]


@gradients_everywhere
@for_each("name", PAIRS, one_in=0, one_slow_in=3)
def test_product_outputs_gradients_and_dtypes_agree_with_flax(name, everywhere):
    everywhere = everywhere or name in GRADIENTS_OVER_ALL_CELLS
    options = {"cells": EXACT, "with_gradients": EQUAL, "everywhere": everywhere, "ulps": 4}
    with jax.enable_x64(True):
        assert differences_with_some_gradients(*PAIRS[name], **options) == []


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # of Flax
@pytest.mark.one_slow_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_products_keep_imaginary_parts_that_flax_truncates(name):
    """Flax drops imaginary parts if a real dtype is requested; ours promotes that dtype to a complex one."""
    ours, theirs, inputs, params = PAIRS[name]
    # The inputs of an embedding are integers, so only its table can be complex.
    cells = [cell for cell in TRUNCATED if name != "embedding" or cell.params == "complex64"]
    with jax.enable_x64(True):
        assert_imaginary_parts_are_kept(ours, inputs, params, cells)
        for cell in cells:
            flax = jax.eval_shape(
                functools.partial(theirs, dtype=cell.asked),
                random_like(params, cell.params), random_like(inputs, cell.inputs),
            )  # fmt: skip
            assert flax.dtype == cell.asked


LAYERS = {
    "dense": (lambda **kw: Dense(2, **kw), lambda **kw: linen.Dense(2, **kw), (2, 3)),
    "dense_general": (lambda **kw: DenseGeneral((2, 2), axis=(1, 2), **kw),
     lambda **kw: linen.DenseGeneral((2, 2), axis=(1, 2), **kw), (2, 2, 3)),
    "einsum": (lambda **kw: Einsum(EQUATION, (2, 3, 2), bias_shape=(2, 2), **kw),
     lambda **kw: linen.Einsum((2, 3, 2), EQUATION, **kw), (1, 2, 3)),
    "conv": (lambda **kw: Conv(4, (2,), strides=2, groups=2, **kw),
     lambda **kw: linen.Conv(4, (2,), strides=2, feature_group_count=2, **kw), (1, 4, 2)),
    "conv_transpose": (lambda **kw: ConvTranspose(2, (3,), strides=2, **kw),
     lambda **kw: linen.ConvTranspose(2, (3,), strides=(2,), **kw), (1, 2, 2)),
    "embedding": (lambda **kw: Embedding(3, 2, **kw), lambda **kw: linen.Embed(3, 2, **kw), None),
}  # fmt: skip
# The dtypes of inputs and of parameters, and the requested dtype; the functional tests cover complex parameters.
OF_LAYERS = [("bfloat16", "float32", None), ("complex64", "bfloat16", None), ("float16", "float32", "bfloat16")]


@pytest.mark.one_slow_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_product_layers_agree_with_flax(name):
    make, make_theirs, shape = LAYERS[name]
    with jax.enable_x64(True):
        for inputs, params, asked in OF_LAYERS:
            x = INDICES if shape is None else random_like(shape, inputs, 1)
            layer = make(dtype="infer" if asked is None else asked, param_dtype=params)
            theirs = make_theirs(dtype=asked, param_dtype=params)
            nn.initialize(layer, x)
            values = {path: variable.read_stored() for path, variable in layer.variables.items()}
            given = theirs.init(jax.random.key(0), x)["params"]
            assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), values) == jax.tree.map(
                lambda leaf: (leaf.shape, leaf.dtype), given
            )
            got, want = layer(x), theirs.apply({"params": values}, x)
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(
                np.asarray(got, "complex128"), np.asarray(want, "complex128"), atol=4 * float(jnp.finfo(got.dtype).eps)
            )


DEPARTURES = {
    "circular transposes": "Flax documents that ConvTranspose with a transposed kernel is the transpose of Conv. With "
    "strides 1 and an even window its result is shifted by one instead.",
    "negative indices": "Flax counts them from the end of the table; here an index of -1, often used for padding, "
    "is not a row",
    "order of axes": "Flax sorts the contracted axes of DenseGeneral; here the kernel keeps their given order",
}


def test_circular_conv_transpose_is_the_transpose_of_conv_where_flax_shifts_by_one():
    kernel, y = random_like((2, 2, 2), "float32"), random_like((1, 4, 2), "float32", 1)
    _, pull = jax.vjp(lambda x: conv(x, kernel, padding="CIRCULAR"), jnp.zeros((1, 4, 2)))
    _, pull_theirs = jax.vjp(
        lambda x: linen.Conv(2, (2,), padding="CIRCULAR", use_bias=False).apply({"params": {"kernel": kernel}}, x),
        jnp.zeros((1, 4, 2)),
    )
    want = pull(y)[0]
    np.testing.assert_array_equal(want, pull_theirs(y)[0])
    theirs = linen.ConvTranspose(2, (2,), padding="CIRCULAR", use_bias=False, transpose_kernel=True)
    got = conv_transpose(y, kernel, padding="CIRCULAR", transpose_kernel=True)
    np.testing.assert_allclose(got, want, atol=1e-5)
    assert not np.allclose(theirs.apply({"params": {"kernel": kernel}}, y), want), DEPARTURES["circular transposes"]


def test_embedding_refuses_negative_indices_where_flax_counts_from_the_end():
    table, indices = random_like((3, 2), "float32"), jnp.asarray([-1])
    theirs = linen.Embed(3, 2).apply({"params": {"embedding": table}}, indices)
    np.testing.assert_array_equal(theirs[0], table[2], err_msg=DEPARTURES["negative indices"])
    with pytest.raises(ArgumentError, match="indices must be from 0 to 2 for a table of 3 rows, got -1"):
        embedding(indices, table)
    assert np.all(np.isnan(jax.jit(embedding)(indices, table)))


def test_dense_general_kernel_keeps_the_given_order_of_axes_where_flax_sorts():
    x = random_like((1, 2, 3), "float32")
    shapes = linen.DenseGeneral(4, axis=(2, 1)).init(jax.random.key(0), x)["params"]["kernel"].shape
    assert shapes == (2, 3, 4), DEPARTURES["order of axes"]
    layer = DenseGeneral(4, axis=(2, 1))
    nn.initialize(layer, x)
    assert layer.kernel.shape == (3, 2, 4)


POOLS = {
    "max_pool": (max_pool, linen.max_pool),
    "avg_pool": (avg_pool, linen.avg_pool),
}


@for_each("name, dtype", itertools.product(POOLS, ("float16", "bfloat16", "float32", "float64")))
def test_pooling_dtypes_and_values_agree_with_flax(name, dtype):
    ours, theirs = POOLS[name]
    with jax.enable_x64(True):
        x = random_like((2, 5, 4, 2), dtype)
        got = ours(x, (2, 3), strides=(2, 1), padding="SAME")
        want = theirs(x, (2, 3), strides=(2, 1), padding="SAME")
        assert got.dtype == want.dtype == dtype
        rtol = 4 * float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(np.asarray(got, "float64"), np.asarray(want, "float64"), rtol=rtol, atol=rtol)


@for_each("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"], one_in=3)
def test_dropout_dtype_agrees_with_flax(dtype):
    with jax.enable_x64(True):
        x = random_like((4, 3), dtype)
        key = jax.random.key(0)
        want = linen.Dropout(0.5, deterministic=False).apply({}, x, rngs={"dropout": key})
        got = dropout(key, x, 0.5)
        assert got.dtype == want.dtype == dtype
        assert set(np.unique(np.asarray(got) / np.asarray(x))) <= {0, 2}
