import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum.formats import as_format
from supremum.nn.functional.attention import rotary_embedding

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 300, 3, 8)).astype("float32")


def exact(x, positions, base=10000.0):
    """Rotate pairs as complex numbers in float64."""
    x = np.asarray(x, np.float64)
    half = x.shape[-1] // 2
    pairs = x[..., :half] + 1j * x[..., half:]
    angles = np.asarray(positions, np.float64)[..., None, None] * base ** (-np.arange(half) / half)
    turned = pairs * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], -1)


@pytest.mark.one_in(10)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_values_and_gradients_agree_with_float64(dtype, jitted, base):
    """Angles in bfloat16 would be off by half a radian at position 299."""
    x, cotangent, positions = jnp.asarray(X, dtype), jnp.asarray(X[::-1], dtype), np.arange(300)

    def run(x, cotangent):
        outputs, pull = jax.vjp(lambda x: rotary_embedding(x, positions, base=base), x)
        return outputs, *pull(cotangent)

    got = (jax.jit(run) if jitted else run)(x, cotangent)
    wanted = exact(x, positions, base), exact(cotangent, -positions, base)
    limit = 0.51 * as_format(dtype).eps if dtype != "float32" else 2e-5  # float32 angles of 299 are off by 1e-5
    for leaf, want in zip(got, wanted, strict=True):
        assert leaf.dtype == dtype
        assert (np.abs(np.asarray(leaf, np.float64) - want) <= limit * np.maximum(np.abs(want), 4)).all()


def test_products_depend_only_on_distances():
    query, key = jnp.asarray(X[0, :1]), jnp.asarray(X[1, :1])
    found = [
        (rotary_embedding(query, jnp.asarray([n])) * rotary_embedding(key, jnp.asarray([n + 5]))).sum(-1)
        for n in (0, 7, 40)
    ]
    np.testing.assert_allclose(found[1:], [found[0]] * 2, atol=2e-5)


@pytest.mark.slow
def test_positions_may_have_any_dtype_and_size():
    positions = jnp.stack([jnp.arange(300), 2 * jnp.arange(300)])
    x = jnp.asarray(X, "float32")
    np.testing.assert_allclose(rotary_embedding(x, positions), exact(x, positions), atol=2e-4)
    np.testing.assert_array_equal(rotary_embedding(x, jnp.zeros((), "float16")), x)
    assert rotary_embedding(jnp.ones((2, 1, 4), int), jnp.arange(2)).dtype == "float32"
    assert rotary_embedding(x, jnp.arange(300), dtype="bfloat16").dtype == "bfloat16"
    assert rotary_embedding(x[:0], jnp.arange(300)).shape == (0, 300, 3, 8)
