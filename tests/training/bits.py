"""Arrays of any bits, compared bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np


def any_bits(row, shape, random):
    """An array of any bit patterns, NaNs with payloads among them; what a format has no use for in a byte is zero."""
    size = int(np.prod(shape)) * row.dtype.itemsize
    pattern = random.integers(0, 1 << min(row.bits, 8), size, np.uint8)
    return pattern.view(row.dtype).reshape(shape)


def same(a, b):
    """Whether two arrays, or keys, are the same in every bit."""
    if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        return a.dtype == b.dtype and same(jax.random.key_data(a), jax.random.key_data(b))
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert same(found[name], array), name


def names(folder):
    return [file.name for file in folder.iterdir()]
