from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn.attention_reference import (  # noqa: F401 (a fixture)
    BATCH,
    DIM,
    GROUPS,
    HEADS,
    KEYS,
    QUERIES,
    VALUE_DIM,
    additive,
    exact,
    normal,
    operands,
    outputs_and_gradients,
    rng,
    seed_rng,
    ulps,
)
from slowly import mostly_slow
from supremum.formats import as_format
from supremum.jax_compat import INLINE
from supremum.jaxprs import walk
from supremum.nn.functional import attention
from supremum.nn.functional.attention import dot_product_attention
from supremum.nn.functional.masks import combine_masks, make_attention_mask, make_causal_mask

every_format = pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
SCORES = (BATCH, HEADS, QUERIES, KEYS)
CHUNKS = [None, 1, 2, 3, 5, 9]


@pytest.mark.parametrize("chunk", mostly_slow(CHUNKS, 3))
@pytest.mark.parametrize("dtype", mostly_slow(["float32", "float16", "bfloat16"], "float16"))
@pytest.mark.parametrize("jitted", mostly_slow([False, True], True), ids=["eager", "jitted"])
def test_every_chunk_agrees_with_float64(dtype, chunk, jitted):
    args, bias = operands(dtype), normal(HEADS, 1, KEYS)
    mask = jnp.asarray(rng.random((BATCH, 1, QUERIES, KEYS)) > 0.3).at[0, 0, 2].set(False)
    cotangent = normal(BATCH, QUERIES, HEADS, VALUE_DIM, dtype=dtype)

    def run(query, key, value, bias):
        return dot_product_attention(query, key, value, mask=mask, bias=bias, is_causal=True, chunk=chunk)

    got = outputs_and_gradients(run, cotangent, *args, bias, jitted=jitted)
    *want, of_scores = exact(*args, cotangent, mask=mask & make_causal_mask(QUERIES, KEYS), bias=bias)
    assert [leaf.dtype for leaf in got] == [dtype] * 4 + ["float32"]
    limit = 0.51 if dtype != "float32" else 16
    assert [ulps(a, b) <= limit for a, b in zip(got[:4], want, strict=True)] == [True] * 4
    assert ulps(got[4], of_scores.sum((0, 2), keepdims=True)[0]) < 16
    assert got[0][0, 2].tolist() == np.zeros((HEADS, VALUE_DIM)).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(), (KEYS,), (QUERIES, 1), (HEADS, 1, 1), SCORES, (BATCH, 1, 1, KEYS)])
@pytest.mark.parametrize("chunk", [None, 3])
def test_biases_of_every_shape_have_gradients(shape, chunk):
    args, bias = operands(), normal(*shape)
    cotangent = normal(BATCH, QUERIES, HEADS, VALUE_DIM)
    run = lambda bias: dot_product_attention(*args, bias=bias, chunk=chunk)  # noqa: E731
    _, gradient = outputs_and_gradients(run, cotangent, bias)
    *_, of_scores = exact(*args, cotangent, bias=bias)
    axes = tuple(range(4 - len(shape))) + tuple(4 - len(shape) + i for i, n in enumerate(shape) if n == 1)
    np.testing.assert_allclose(gradient, of_scores.sum(axes).reshape(shape), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 3])
def test_dropout_does_not_depend_on_chunks(chunk):
    args, cotangent = operands(), normal(BATCH, QUERIES, HEADS, VALUE_DIM)
    results = [
        outputs_and_gradients(
            partial(dot_product_attention, dropout_rate=0.3, dropout_key=jax.random.key(1), chunk=size),
            cotangent,
            *args,
        )
        for size in (None, chunk)
    ]
    for plain, chunked in zip(*results, strict=True):
        np.testing.assert_allclose(plain, chunked, atol=2e-6)


@pytest.mark.slow
def test_dropout_keeps_rate_mean_and_gradients():
    keys, rate = 64, 0.25
    value = jnp.eye(keys)[:, None]
    query, key = normal(50, 1, 4), normal(keys, 1, 4)
    plain = jax.jit(dot_product_attention)(query, key, value)
    run = jax.jit(partial(dot_product_attention, dropout_rate=rate, dropout_key=jax.random.key(2)))
    dropped = run(query, key, value)
    kept = np.asarray(dropped) != 0
    assert abs(kept.mean() - (1 - rate)) < 0.03
    np.testing.assert_allclose(np.asarray(dropped)[kept], np.asarray(plain)[kept] / (1 - rate), rtol=1e-5)
    # The directional derivative must match the gradients.
    cotangent, step = normal(*dropped.shape), 1e-2
    direction = normal(*query.shape)
    gradient = outputs_and_gradients(lambda query: run(query, key, value), cotangent, query)[1]
    moved = [run(query + sign * step * direction, key, value) for sign in (1, -1)]
    slope = float(((moved[0] - moved[1]) * cotangent).sum()) / (2 * step)
    np.testing.assert_allclose(slope, float((gradient * direction).sum()), rtol=2e-2)


@pytest.mark.slow
def test_second_derivatives_agree_with_plain_attention():
    args, cotangent = operands(), normal(BATCH, QUERIES, HEADS, VALUE_DIM)

    def plain(query, key, value):
        key, value = (jnp.repeat(array, HEADS // GROUPS, -2) for array in (key, value))
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * DIM**-0.5
        return (jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value) * cotangent).sum()

    def ours(chunk, *args):
        return (dot_product_attention(*args, chunk=chunk) * cotangent).sum()

    want = jax.jit(jax.hessian(plain))(*args)
    np.testing.assert_allclose(jax.jit(jax.hessian(partial(ours, None)))(*args), want, atol=5e-6)
    np.testing.assert_allclose(jax.jit(jax.hessian(partial(ours, 3)))(*args), want, atol=5e-6)
    forward, backward = (jax.jit(slope(partial(ours, 3)))(*args) for slope in (jax.jacfwd, jax.grad))
    np.testing.assert_allclose(forward, backward, atol=5e-6)


LONG = 8192


def large(name):
    """Return query, key, value and cotangent. The named array has numbers up to 6e4, and gradients are in range."""
    queries, heads, dim = 64, 2, 16
    made = {
        "query": normal(queries, heads, dim),
        "key": normal(LONG, heads, dim),
        "value": normal(LONG, heads, dim),
        "cotangent": normal(queries, heads, dim, scale=1e-2),
    }
    made[name] = jnp.asarray(rng.uniform(-6e4, 6e4, made[name].shape), "float32")
    if name in ("query", "key"):  # keeps scores moderate
        made["key" if name == "query" else "query"] *= 2e-5
        made["cotangent"] *= 1e2
    return tuple(made.values())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["query", "key", "value"])
@pytest.mark.parametrize("chunk", [None, 20])
def test_thousands_of_keys_and_large_values_stay_finite(dtype, name, chunk):
    args = tuple(array.astype(dtype) for array in large(name))
    got = outputs_and_gradients(partial(dot_product_attention, chunk=chunk), args[-1], *args[:-1])
    want = exact(*args)[:4]
    least = as_format(dtype).smallest_normal
    for a, b in zip(got, want, strict=True):
        assert a.dtype == dtype
        assert ulps(a, b) <= 1 or np.abs(b).max() < least * 16


@pytest.mark.compiled
@pytest.mark.slow
def test_probabilities_are_not_rounded_before_the_product_with_the_values():
    """All probabilities but one are exp(-15), which float16 rounds by 26 units in the last place in one direction."""
    query = jnp.ones((1, 1, 1), "float16")
    key = jnp.full((LONG, 1, 1), -15, "float16").at[0].set(0)
    value = jnp.ones((LONG, 1, 2), "float16").at[0].set(0)
    got = dot_product_attention(query, key, value)
    assert ulps(got, exact(query, key, value, got)[0]) <= 0.51


@pytest.mark.compiled
@pytest.mark.parametrize("heads", mostly_slow([1, 8], 1))
@pytest.mark.parametrize("dtype", mostly_slow(["float32", "float16", "bfloat16"], "float16"))
def test_memory_is_bounded_for_65536_keys(dtype, heads):
    """The scores of one head need 16 GiB in float32. This only compiles, and asks XLA for its buffer sizes."""
    x = jax.ShapeDtypeStruct((65536, heads, 64), dtype)

    def gibibytes(run):
        return jax.jit(run).lower(x, x, x).compile().memory_analysis().temp_size_in_bytes / 2**30

    operands_and_results = heads * 65536 * 64 * 4 / 2**30
    assert gibibytes(dot_product_attention) < 0.6 + 5 * operands_and_results
    run = jax.grad(lambda *args: dot_product_attention(*args).astype("float32").sum(), (0, 1, 2))
    assert gibibytes(run) < 1 + 6 * operands_and_results


@pytest.mark.slow
@every_format
def test_scores_beyond_float16_select_one_key(dtype):
    x = jnp.asarray(rng.choice([-6e4, 6e4], (64, 1, 16)), dtype)
    got, *gradients = outputs_and_gradients(dot_product_attention, x * 1e-4, x, x, x)
    assert (got == x).all()
    assert all(np.isfinite(np.asarray(gradient)).all() for gradient in gradients)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_scores_are_products_of_16_bit_operands_and_every_product_is_float32(dtype):
    args = operands(dtype)

    def loss(*args):
        return dot_product_attention(*args).astype("float32").sum()

    products = [
        equation
        for equation in jax.make_jaxpr(jax.jit(jax.grad(loss, (0, 1, 2)), inline=INLINE))(*args).eqns
        if equation.primitive.name == "dot_general"
    ]
    narrow = [equation for equation in products if {str(v.aval.dtype) for v in equation.invars} == {dtype}]
    assert (len(products), len(narrow)) == (6, 1)  # two forward and four gradients
    assert all(equation.outvars[0].aval.dtype == "float32" for equation in products)


@pytest.mark.parametrize(
    ("queries", "keys", "chunk"),
    [(1024, 1024, 1024), (1025, 1024, 1024), (2048, 2048, 512), (2, 2**20, 1), (2**16, 2**16, 16), (1, 2**21, 1)],
)
def test_the_number_of_queries_at_once_depends_on_the_number_of_scores(monkeypatch, queries, keys, chunk):
    monkeypatch.setattr(attention, "SCORES_AT_ONCE", 2**20)
    x = jax.ShapeDtypeStruct((max(queries, keys), 1, 1), "float32")
    program = jax.make_jaxpr(lambda x: dot_product_attention(x[:queries], x[:keys], x[:keys]))(x)
    equations = [site.equation for site in walk(program)]
    sizes = [each.outvars[0].aval.size for each in equations if each.primitive.name == "exp"]
    assert max(sizes) == chunk * keys


class TestMasks:
    @pytest.mark.slow
    def test_a_floating_mask_is_added(self):
        args, mask = operands(), normal(BATCH, 1, QUERIES, KEYS)
        got = dot_product_attention(*args, mask=mask, bias=mask)
        np.testing.assert_allclose(got, dot_product_attention(*args, bias=2 * mask), rtol=1e-5)
        slope = jax.grad(lambda mask: (dot_product_attention(*args, mask=mask) ** 2).sum())(mask)
        want = jax.grad(lambda bias: (dot_product_attention(*args, bias=bias) ** 2).sum())(mask)
        np.testing.assert_allclose(slope, want, atol=1e-6)

    @pytest.mark.slow
    @every_format
    @pytest.mark.parametrize("chunk", [None, 2])
    def test_minimum_of_the_mask_format_excludes_keys_for_all_scores(self, dtype, chunk):
        """Adding float16's minimum to scores of 6e9 changes nothing, and a row of minima would attend to all keys."""
        mask = jnp.ones((QUERIES, KEYS), bool).at[:, 0].set(False).at[1].set(False)
        query, key, value = operands(dtype)
        query, key = jnp.full_like(query, 6e4), jnp.ones_like(key).at[:, 0].set(6e4)
        boolean = jax.jit(partial(dot_product_attention, chunk=chunk))(query, key, value, mask=mask)
        assert (boolean[:, 1] == 0).all()
        for written in (additive(mask, dtype), jnp.where(mask, 0.0, -jnp.inf)):
            run = partial(dot_product_attention, mask=written, chunk=chunk)
            cotangent = value[:, :QUERIES].repeat(2, 2) * 1e-3
            got, *gradients = outputs_and_gradients(run, cotangent, query, key, value)
            assert (got == boolean).all()
            assert all(np.isfinite(np.asarray(gradient)).all() for gradient in gradients)

    @pytest.mark.slow
    @every_format
    @pytest.mark.parametrize("chunk", [None, 2])
    def test_queries_without_keys_get_zeros_and_zero_gradients(self, dtype, chunk):
        args = operands(dtype)
        run = partial(dot_product_attention, mask=jnp.zeros((QUERIES, KEYS), bool), chunk=chunk)
        for leaf in outputs_and_gradients(run, normal(BATCH, QUERIES, HEADS, VALUE_DIM, dtype=dtype), *args):
            assert (leaf == 0).all()
        assert (dot_product_attention(args[0], args[1][:, :0], args[2][:, :0]) == 0).all()

    def test_causal_mask_agrees_with_is_causal(self):
        assert make_causal_mask(3).tolist() == np.tri(3, dtype=bool).tolist()
        assert make_causal_mask(2, 4, offset=1).tolist() == np.tri(2, 4, 1, dtype=bool).tolist()
        args = operands()
        by_name = jax.jit(lambda *args: dot_product_attention(*args, is_causal=True))
        by_mask = jax.jit(lambda *args: dot_product_attention(*args, mask=make_causal_mask(QUERIES, KEYS)))
        np.testing.assert_array_equal(by_name(*args), by_mask(*args))

    def test_padding_masks_combine_with_causal_masks(self):
        valid = jnp.asarray([[True, True, False], [True, False, False]])
        mask = make_attention_mask(valid, valid)
        assert (mask.shape, mask.dtype) == ((2, 1, 3, 3), "bool")
        np.testing.assert_array_equal(mask[:, 0], valid[:, :, None] & valid[:, None])
        np.testing.assert_array_equal(combine_masks(None, mask, make_causal_mask(3)), mask & np.tri(3, dtype=bool))
        assert combine_masks(None) is None


@pytest.mark.slow
def test_dtypes_follow_promotion_and_integers_become_float32():
    query, key, value = operands()
    half = query.astype("float16")

    def dtype_of(*args, **options):
        return jax.eval_shape(partial(dot_product_attention, **options), *args).dtype

    assert dtype_of(half, key, value) == "float32"
    assert dtype_of(half, key, value, dtype="bfloat16") == "bfloat16"
    assert dtype_of(*(jnp.ones((3, 1, 2), "int8") for _ in range(3))) == "float32"
    assert dtype_of(half, half, half, bias=jnp.zeros(()), mask=jnp.zeros(())) == "float16"
    with jax.enable_x64(True):
        wide = tuple(jnp.asarray(np.asarray(array), "float64") for array in (query, key, value))
        assert ulps(dot_product_attention(*wide), exact(*wide, jnp.zeros((BATCH, QUERIES, HEADS, VALUE_DIM)))[0]) < 16
        # A float64 bias is added in float64; the result has the dtype of the operands.
        bias = jnp.asarray([0, 1e-12] + [0] * (KEYS - 2), "float64")
        slopes = jax.jit(jax.grad(lambda bias: dot_product_attention(query, key, value, bias=bias).sum()))(bias)
        assert slopes.dtype == "float64"
        assert dtype_of(query, key, value, bias=bias) == "float32"


@pytest.mark.slow
@pytest.mark.parametrize("batch", [(), (0,), (2, 3)])
def test_any_number_of_batch_axes(batch):
    query, key, value = (np.asarray(normal(*batch, *array.shape[1:])) for array in operands())
    got, *gradients = outputs_and_gradients(
        partial(dot_product_attention, chunk=3), query.repeat(2, -1), query, key, value
    )
    assert got.shape == (*batch, QUERIES, HEADS, VALUE_DIM)
    assert [g.shape for g in gradients] == [query.shape, key.shape, value.shape]
    if batch == (2, 3):
        one = jax.jit(dot_product_attention)(query[1, 2], key[1, 2], value[1, 2])
        np.testing.assert_allclose(got[1, 2], one, atol=1e-6)
        mapped = jax.jit(jax.vmap(jax.vmap(dot_product_attention)))(query, key, value)
        np.testing.assert_allclose(mapped, got, rtol=1e-5, atol=1e-6)
