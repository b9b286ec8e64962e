"""Arrays of random bits, and bit-for-bit comparison."""

import jax
import jax.numpy as jnp
import numpy as np


def any_bits(row, shape, random):
    """Return an array of random bits, including NaNs with payloads; bits of a byte that a format does not use are 0."""
    size = int(np.prod(shape)) * row.dtype.itemsize
    pattern = random.integers(0, 1 << min(row.bits, 8), size, np.uint8)
    return pattern.view(row.dtype).reshape(shape)


def same(a, b):
    """Return whether two arrays or PRNG keys have the same dtype, shape and bits."""
    if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        return a.dtype == b.dtype and same(jax.random.key_data(a), jax.random.key_data(b))
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def assert_same(found, expected):
    """Assert that two dicts have the same names in the same order, at least one, and arrays with the same bits."""
    assert list(found) == list(expected)
    assert expected
    for name, array in expected.items():
        assert same(found[name], array), name


def file_names(folder):
    return [file.name for file in folder.iterdir()]
