import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn.arrays import built, data
from supremum import nn
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.nn.functional.embedding import attend, embedding
from supremum.nn.layers.embedding import Embedding

INTEGERS = ["int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("rows", [8, 300])
def test_integers_of_any_width_are_indices(dtype, rows):
    table = data(rows, 2)
    indices = jnp.asarray([[0, 7], [3, 3]], dtype)
    want = np.asarray(table)[[[0, 7], [3, 3]]]
    for run in (embedding, jax.jit(embedding)):
        np.testing.assert_array_equal(run(indices, table), want)
    np.testing.assert_array_equal(embedding(np.asarray(indices), table), want)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_64_bit_indices_do_not_wrap_around(dtype):
    with jax.enable_x64(True):
        table = data(5, 2)
        indices = jnp.asarray([1, 2**40], dtype)
        got = jax.jit(embedding)(indices, table)
        np.testing.assert_array_equal(got[0], table[1])
        assert np.all(np.isnan(got[1]))
        np.testing.assert_array_equal(jax.jit(embedding)(indices[:1], table)[0], table[1])


def test_large_numpy_indices_do_not_wrap_around():
    with pytest.raises(ArgumentError, match="indices must be from 0 to 4 for a table of 5 rows, got 4294967297"):
        embedding(np.asarray([2**32 + 1]), data(5, 2))


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_index_out_of_range_raises_or_gives_nan(dtype):
    table, numbers = data(5, 2), np.arange(10, dtype="int16").reshape(5, 2)

    @jax.jit
    def jitted(indices):
        dtypes = (None, "float16", "bfloat16")
        return [embedding(indices, table, dtype=asked) for asked in dtypes], embedding(indices, numbers)

    for index in (-1, 5, 127):
        indices = jax.device_put(np.asarray([1, index], dtype))
        with pytest.raises(ArgumentError, match=f"indices must be from 0 to 4 for a table of 5 rows, got {index}"):
            embedding(indices, table)
        rows, integers = jitted(indices)
        for got in rows:
            assert np.isfinite(np.asarray(got, "float32")).tolist() == [[True] * 2, [False] * 2], (index, got.dtype)
            assert np.all(np.isnan(np.asarray(got[1], "float32")))
        np.testing.assert_array_equal(integers, [[2, 3], [-(2**15)] * 2])


def test_index_out_of_range_gets_no_gradient():
    table = data(5, 2)
    gradient = jax.jit(jax.grad(lambda t, i: embedding(i, t)[0].sum()))(table, jnp.asarray([4, -1, 5]))
    np.testing.assert_array_equal(gradient, np.eye(5)[:, [4]] * np.ones(2))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("table", ["float16", "bfloat16", "float32", "complex64", "int8"])
def test_result_has_the_dtype_of_the_table_by_default(table):
    rows, indices = data(4, 2, dtype=table), np.asarray([0, 3])
    run = jax.jit(lambda indices, rows: (embedding(indices, rows), embedding(indices, rows, dtype="bfloat16")))
    got, named = run(indices, rows)
    assert got.dtype == table
    np.testing.assert_array_equal(got, np.asarray(rows)[indices])
    assert named.dtype == ("complex64" if table == "complex64" else "bfloat16")
    np.testing.assert_array_equal(named, np.asarray(rows)[indices].astype(named.dtype))


@pytest.mark.compiled
@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradient_of_a_row_used_4096_times_rounds_once(dtype):
    weights = jnp.abs(data(4096, 1, dtype=dtype))
    table = data(2, 1, dtype=dtype)

    def loss(table):
        return jnp.sum((embedding(jnp.zeros(4096, "int32"), table) * weights).astype("float32"))

    gradient = jax.jit(jax.grad(loss))(table)
    want = np.asarray(weights, np.float64).sum()
    assert gradient.dtype == dtype
    assert abs(float(gradient[0, 0]) / want - 1) <= 0.51 * as_format(dtype).eps


def test_empty_and_scalar_indices():
    assert embedding(jnp.zeros((0, 3), "int32"), data(5, 2)).shape == (0, 3, 2)
    assert embedding(3, data(5, 2)).shape == (2,)
    assert embedding(np.int8(3), data(5, 2)).shape == (2,)


class TestAttend:
    @pytest.mark.parametrize("dtype", [None, "float16", "bfloat16", "complex64"])
    def test_values_match_numpy(self, dtype):
        x, table = data(2, 3, 4), data(5, 4, seed=1)
        got = attend(x, table, dtype=dtype)
        assert (got.shape, got.dtype) == ((2, 3, 5), dtype or "float32")
        want = np.asarray(x) @ np.asarray(table).T
        np.testing.assert_allclose(np.asarray(got).astype("complex64"), want, atol=20 * as_format(got.dtype).eps)

    def test_result_type_of_inputs_and_table(self):
        assert attend(data(4, dtype="bfloat16"), data(5, 4)).dtype == "float32"
        assert attend(jnp.arange(4), data(5, 4, dtype="bfloat16")).dtype == "bfloat16"

    def test_empty_batch_gives_an_empty_result(self):
        assert attend(jnp.zeros((0, 4)), data(5, 4)).shape == (0, 5)


class LanguageModel(nn.Layer):
    """A language model that shares a table between its first layer and its logits."""

    def __init__(self, dtype, inner):
        super().__init__(dtype=dtype)
        self.embedding = Embedding(7, 4, dtype=inner)

    def call(self, tokens):
        x = self.embedding(tokens)
        self.seen = x.dtype
        return self.embedding.attend(x)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16", "infer"])
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_layer_reads_rows_in_its_compute_dtype(policy, jitted):
    tokens = np.uint8([[1, 2, 6]])
    layer = built(Embedding(7, 4, dtype=policy, name="tokens"), tokens)
    table = np.asarray(layer.embedding.read_stored())
    assert {path: (v.shape, v.dtype) for path, v in layer.variables.items()} == {"embedding": ((7, 4), "float32")}
    got = (jax.jit(layer) if jitted else layer)(tokens)
    assert got.dtype == (layer.compute_dtype or "float32")
    np.testing.assert_array_equal(got, table[tokens].astype(got.dtype))
    stored = built(Embedding(7, 4, dtype=policy, param_dtype="bfloat16"), tokens)
    assert stored.embedding.read_stored().dtype == "bfloat16"
    assert jax.eval_shape(stored, tokens).dtype == (layer.compute_dtype or "bfloat16")


@pytest.mark.parametrize(("outer", "inner"), [("float32", "mixed_float16"), ("mixed_bfloat16", "float32")])
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_layer_can_attend_in_the_call_of_an_outer_layer(outer, inner, jitted):
    tokens = jnp.asarray([1, 2])
    with pytest.warns(nn.MixedDtypeWarning):  # the outer layer returns the inner one's dtype
        model = built(LanguageModel(outer, inner), tokens)
    got = (jax.jit(model) if jitted else model)(tokens)
    assert got.dtype == model.seen == model.embedding.compute_dtype
    table = np.asarray(model.embedding.embedding.read_stored()).astype(got.dtype)
    want = np.asarray(table[tokens], "float64") @ np.asarray(table, "float64").T
    np.testing.assert_allclose(np.asarray(got, "float64"), want, atol=2 * as_format(got.dtype).eps)


@pytest.mark.slow
def test_gradients_of_a_mixed_layer_accumulate_in_float32():
    tokens = jnp.zeros(4096, "int32")
    layer = built(Embedding(2, 1, dtype="mixed_float16"), tokens)
    weights = jnp.abs(data(4096, 1, dtype="float16"))

    def loss(variables):
        out, _ = nn.functional_call(layer, variables, tokens)
        return (out * weights).astype("float32").sum()

    gradient = jax.grad(loss)(nn.split_variables(layer)[0])["embedding"]
    assert gradient.dtype == "float32"
    np.testing.assert_allclose(gradient[0, 0], np.asarray(weights, "float64").sum(), rtol=1e-6)


def test_rows_start_with_a_norm_of_about_one():
    table = built(Embedding(500, 100), jnp.asarray([0])).embedding.read_stored()
    norms = np.linalg.norm(table, axis=1)
    assert abs(norms.mean() - 1) < 0.02
    assert 0.7 < norms.min() < norms.max() < 1.3
