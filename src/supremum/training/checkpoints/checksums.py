"""A checksum of an array that does not depend on how the array is spread over devices, nor on whose it is."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from supremum.formats import Format, Kind, as_format

_WORD = as_format("uint32")


def checksum(array: jax.Array | np.ndarray) -> int:
    """The sum of its 32-bit words, each times an odd number that its place determines, modulo 2**32.

    The parts of a sharded array are summed where they are, and only their sums meet. A single flipped bit always
    changes the sum, since an odd number times a power of two is not 0; of other damage about one in 2**32 goes unseen.
    The numbers are the places put through the finaliser of MurmurHash3 (Austin Appleby, fmix32).

    Args:
        array: an array of NumPy, or one of JAX of any sharding, for which every process has to make the call.

    >>> array = np.arange(6, dtype="float32")
    >>> checksum(array) == checksum(jnp.asarray(array)), checksum(array) == checksum(array[::-1])
    (True, False)
    """
    if isinstance(array, np.ndarray):
        return int(_weighed(jnp.asarray(_host_words(array, as_format(array.dtype)))))
    return int(_checksum(array))


def _host_words(array: np.ndarray, held: Format) -> np.ndarray:
    """The words of an array of NumPy, along one axis."""
    size = min(array.itemsize, _WORD.dtype.itemsize)
    words = np.ascontiguousarray(array).reshape(-1).view(f"u{size}")
    # The bits that a format does not use have no meaning, and not every library keeps them.
    return (words & ((1 << held.bits) - 1) if held.bits < 8 * size else words).astype(_WORD.dtype)


@jax.jit
def _checksum(array: jax.Array) -> jax.Array:
    held = as_format(array.dtype)
    if held.kind is Kind.COMPLEX:
        array = jnp.stack([array.real, array.imag], axis=-1)
        held = as_format(array.dtype)
    if held.category == "bool":
        return _weighed(array)
    words = jax.lax.bitcast_convert_type(array, as_format(f"uint{min(held.bits, _WORD.bits)}").dtype)
    return _weighed(words)


@jax.jit
def _weighed(words: jax.Array) -> jax.Array:
    words = words.astype(_WORD.dtype)
    place = jnp.zeros((), _WORD.dtype)
    for axis in range(words.ndim):
        stride = math.prod(words.shape[axis + 1 :]) % 2**_WORD.bits
        place += jax.lax.broadcasted_iota(_WORD.dtype, words.shape, axis) * np.uint32(stride)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        place = (place ^ (place >> shift)) * np.uint32(factor)
    return jnp.sum(words * (place ^ (place >> 16) | 1), dtype=_WORD.dtype)
