import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

from nn.arrays import built, data
from supremum.formats import as_format
from supremum.nn.functional.products import dense, dense_general, einsum
from supremum.nn.initializers import MatrixInitializer
from supremum.nn.layers.products import Dense, DenseGeneral, Einsum

NARROW = ["float16", "bfloat16"]


def wide(x):
    return np.asarray(x, np.float64)


def products_of(function, *args):
    """Return the dtypes of all operands and results of products, forward and backward."""
    names = ("dot_general", "conv_general_dilated")
    equations = [e for e in jax.make_jaxpr(function)(*args).eqns if e.primitive.name in names]
    return len(equations), {str(v.aval.dtype) for e in equations for v in (*e.invars, *e.outvars)}


FORMS = {
    "dense": (lambda x, k, b, **kw: dense(x, k, b, **kw), (4, 3), (3, 2), (2,), lambda x, k, b: x @ k + b),
    "dense_general": (lambda x, k, b, **kw: dense_general(x, k, b, axes=(3, 1), batch_axes=0, **kw), (2, 3, 4, 5),
     (2, 5, 3, 6, 7), (2, 6, 7), lambda x, k, b: np.einsum("nabc,ncade->nbde", x, k) + b[:, None]),
    "einsum": (lambda x, k, b, **kw: einsum("t...i,hio->h...to", x, k, b, **kw), (3, 2, 2, 4), (5, 4, 6), (5, 6),
     lambda x, k, b: np.einsum("tabi,hio->habto", x, k) + b[:, None, None, None, :]),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(("dtype", "jitted"), [(None, False), (None, True), ("float16", True), ("bfloat16", True)])
def test_values_and_dtypes_match_numpy(name, jitted, dtype):
    form, *shapes, want = FORMS[name]
    arrays = [data(*shape, dtype=dtype or "float32", seed=seed) for seed, shape in enumerate(shapes)]
    inputs = [np.asarray(arrays[0], "float32"), *arrays[1:]]  # cast to the named dtype, as NumPy arrays are

    def run(*given):
        return form(*given, dtype=dtype)

    got = (jax.jit(run) if jitted else run)(*inputs)
    expected = want(*map(wide, arrays))
    assert got.dtype == (dtype or "float32")
    np.testing.assert_allclose(wide(got), expected, atol=4 * as_format(got.dtype).eps * np.abs(expected).max())


@pytest.mark.parametrize("name", FORMS)
def test_products_without_bias_or_batch(name):
    form, x, kernel, bias, want = FORMS[name]
    zeros = jnp.zeros(bias)
    got = form(data(*x), data(*kernel), None)
    np.testing.assert_allclose(got, want(data(*x), data(*kernel), np.zeros(bias)), rtol=1e-4, atol=1e-5)
    if name != "dense_general":  # there axis 0 has separate matrices
        empty = form(jnp.zeros((0, *x[1:])), data(*kernel), zeros)
        assert empty.size == 0
        assert empty.shape == want(np.zeros((0, *x[1:])), np.zeros(kernel), np.zeros(bias)).shape


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("dtype", NARROW)
def test_sums_of_4096_terms_round_once(dtype):
    x, kernel = (jnp.abs(data(*shape, dtype=dtype, seed=seed)) for seed, shape in enumerate([(3, 4096), (4096, 5)]))
    want = wide(x) @ wide(kernel)
    for got in (
        dense(x, kernel),
        dense_general(x.reshape(3, 64, 64), kernel.reshape(64, 64, 5), axes=(1, 2)),
        einsum("abc,bcd->ad", x.reshape(3, 64, 64), kernel.reshape(64, 64, 5)),
        dense(sparse.BCOO.fromdense(x), kernel),
    ):
        assert got.dtype == dtype
        assert np.abs(wide(got) / want - 1).max() <= 0.51 * as_format(dtype).eps


@pytest.mark.compiled
@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", NARROW)
def test_einsum_sums_over_one_operand_round_once(dtype):
    x, kernel = jnp.abs(data(4096, 1, dtype=dtype)), jnp.abs(data(1, 60, dtype=dtype))
    got = einsum("ab,bc->c", x, kernel)
    want = wide(x).sum(0) @ wide(kernel)
    assert got.dtype == dtype
    assert np.abs(wide(got) / want - 1).max() <= 0.51 * as_format(dtype).eps


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dtype", NARROW)
def test_products_stay_in_the_compute_dtype_forward_and_backward(name, dtype):
    form, *shapes, _ = FORMS[name]
    arrays = [data(*shape) for shape in shapes]

    def loss(*given):
        return form(*given, dtype=dtype).astype("float32").sum()

    assert products_of(jax.grad(loss, (0, 1)), *arrays) == (3, {dtype})


class TestSparse:
    def inputs(self, dtype="float32"):
        dense_form = data(4, 6, dtype=dtype) * (np.arange(24).reshape(4, 6) % 3 == 0).astype(dtype)
        return dense_form, sparse.BCOO.fromdense(dense_form)

    @pytest.mark.slow
    @pytest.mark.parametrize("asked", [None, "float16", "complex64"])
    @pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
    def test_sparse_values_and_gradients_match_dense_inputs(self, asked, jitted):
        x, entries = self.inputs()
        kernel, bias = data(6, 2, seed=1), data(2, seed=2)

        def loss(kernel, bias, x):
            return jnp.sum(jnp.abs(dense(x, kernel, bias, dtype=asked)).astype("float32") ** 2)

        run = jax.value_and_grad(loss, (0, 1))
        got, want = (jax.jit(run) if jitted else run)(kernel, bias, entries), jax.jit(run)(kernel, bias, x)
        tolerance = 4 * as_format(asked or "float32").eps
        assert dense(entries, kernel, bias, dtype=asked).dtype == (asked or "float32")
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            assert a.dtype == "float32"
            np.testing.assert_allclose(a, b, rtol=8 * tolerance, atol=8 * tolerance)

    @pytest.mark.slow
    @pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16", "infer"])
    def test_dense_layer_takes_sparse_inputs(self, policy):
        x, entries = self.inputs()
        layer = built(Dense(3, dtype=policy), entries)
        assert layer(entries).dtype == layer(x).dtype == (layer.compute_dtype or "float32")
        eps = as_format(layer(x).dtype).eps
        np.testing.assert_allclose(wide(layer(entries)), wide(layer(x)), atol=4 * eps)
        assert layer.kernel.shape == (6, 3)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "bool"])
def test_integers_and_bools_are_cast_to_the_inexact_dtype(dtype):
    x = jnp.asarray([[1, 0, 1]], dtype)
    assert dense(x, data(3, 2)).dtype == "float32"
    assert dense(x, data(3, 2), dtype="bfloat16").dtype == "bfloat16"
    np.testing.assert_allclose(dense(x, data(3, 2)), np.asarray(x, "float32") @ data(3, 2), rtol=1e-6)


def test_complex_values_are_never_truncated():
    x = data(2, 3) + 1j * data(2, 3, seed=1)
    got = dense(x, data(3, 2), dtype="float16")
    assert got.dtype == "complex64"
    # The kernel must not be rounded to float16 first.
    np.testing.assert_allclose(got, np.asarray(x) @ np.asarray(data(3, 2)), rtol=1e-5)


LAYERS = {
    "dense": (lambda **kw: Dense(4, **kw), (2, 3), {"kernel": (3, 4), "bias": (4,)}, (2, 4)),
    "dense_general": (lambda **kw: DenseGeneral((4, 5), axis=(-1, 1), batch_axis=(0,), **kw), (2, 3, 6, 7),
     {"kernel": (2, 7, 3, 4, 5), "bias": (2, 4, 5)}, (2, 6, 4, 5)),
    "einsum": (lambda **kw: Einsum("bti,hio->bhto", (2, 3, 4), bias_shape=(2, 4), **kw), (5, 6, 3),
     {"kernel": (2, 3, 4), "bias": (2, 4)}, (5, 2, 6, 4)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_bias_is_added_over_its_axes(name):
    make, shape, weights, _ = LAYERS[name]
    layer = built(make(), data(*shape))
    before = layer(data(*shape))
    bias = data(*weights["bias"], seed=3)
    layer.bias.assign(bias)
    moved = np.asarray(layer(data(*shape)) - before)
    other = {"dense": 0, "dense_general": 1, "einsum": 2}[name]
    want = {"dense": bias[None], "dense_general": bias[:, None], "einsum": bias[None, :, None]}[name]
    np.testing.assert_allclose(moved, np.broadcast_to(want, moved.shape), atol=1e-5)
    assert moved.shape[other] > 1


def test_layers_without_bias_or_with_one_feature_axis():
    assert list(built(DenseGeneral(3, use_bias=False), data(2, 4)).variables) == ["kernel"]
    assert list(built(Einsum("ab,bc->ac", [4, 3]), data(2, 4)).variables) == ["kernel"]
    assert list(built(Dense(3, use_bias=False), data(2, 4)).variables) == ["kernel"]


class TestInitialisers:
    def test_kernel_of_many_axes_has_the_scale_of_its_matrix(self):
        """JAX takes the last axis but one as inputs, which would make these values 5 times too small."""
        layer = built(DenseGeneral((2, 30), axis=(1, 2)), jnp.ones((1, 40, 10)))
        limit = np.sqrt(6 / (400 + 60))
        largest = np.abs(layer.kernel.read_stored()).max()
        assert 0.97 * limit < largest <= limit

    def test_matrices_of_a_batch_differ_but_have_the_same_scale(self):
        layer = built(DenseGeneral(30, axis=-1, batch_axis=(0, 1)), jnp.ones((2, 3, 40)))
        kernel = np.asarray(layer.kernel.read_stored()).reshape(6, 40, 30)
        limit = np.sqrt(6 / (40 + 30))
        assert all(0.97 * limit < np.abs(matrix).max() <= limit for matrix in kernel)
        assert len({matrix[0, 0] for matrix in kernel}) == 6

    def test_einsum_kernel_has_the_scale_of_its_matrices(self):
        layer = built(Einsum("bti,hoi->bhto", (3, 50, 40)), jnp.ones((1, 2, 40)))
        limit = np.sqrt(6 / (40 + 150))
        assert 0.97 * limit < np.abs(layer.kernel.read_stored()).max() <= limit

    def test_kernel_axes_keep_their_order(self):
        numbers = lambda key, shape, dtype: jnp.arange(6, dtype=dtype).reshape(shape)  # noqa: E731
        made = MatrixInitializer(numbers, inputs=(1,), outputs=(0,))(jax.random.key(0), (3, 2), np.dtype("float32"))
        np.testing.assert_array_equal(made, np.arange(6).reshape(2, 3).T)

    def test_kernel_has_the_param_dtype(self):
        layer = built(DenseGeneral(3, batch_axis=0, param_dtype="bfloat16"), jnp.ones((2, 4)))
        assert layer.kernel.read_stored().dtype == "bfloat16"
