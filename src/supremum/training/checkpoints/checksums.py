"""A checksum of an array that does not depend on its sharding, or on whether it is a NumPy or a JAX array."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from supremum.formats import Format, Kind, as_format

_WORD = as_format("uint32")


def checksum(array: jax.Array | np.ndarray) -> int:
    """Sum the 32-bit words of an array modulo 2**32, each multiplied by an odd number that its position determines.

    Each device sums its own part of a sharded array, and only the sums are exchanged. A single flipped bit always
    changes the sum, because an odd number times a power of two below 2**32 is not 0 modulo 2**32; other damage goes
    undetected about once in 2**32. The numbers are the positions passed through the finaliser of MurmurHash3 (Austin
    Appleby, fmix32).

    Args:
        array: a NumPy array, or a JAX array with any sharding, for which every process must make the call.

    >>> array = np.arange(6, dtype="float32")
    >>> checksum(array) == checksum(jnp.asarray(array)), checksum(array) == checksum(array[::-1])
    (True, False)
    """
    if isinstance(array, np.ndarray):
        return int(_weighted_sum(jnp.asarray(_host_words(array, as_format(array.dtype)))))
    return int(_checksum(array))


def _host_words(array: np.ndarray, held: Format) -> np.ndarray:
    """Return the words of a NumPy array, along one axis."""
    size = min(array.itemsize, _WORD.dtype.itemsize)
    words = np.ascontiguousarray(array).reshape(-1).view(f"u{size}")
    # Mask the bits that a format does not use: they have no meaning, and not every library preserves them.
    return (words & ((1 << held.bits) - 1) if held.bits < 8 * size else words).astype(_WORD.dtype)


@jax.jit
def _checksum(array: jax.Array) -> jax.Array:
    held = as_format(array.dtype)
    if held.kind is Kind.COMPLEX:
        array = jnp.stack([array.real, array.imag], axis=-1)
        held = as_format(array.dtype)
    if held.category == "bool":
        return _weighted_sum(array)
    words = jax.lax.bitcast_convert_type(array, as_format(f"uint{min(held.bits, _WORD.bits)}").dtype)
    return _weighted_sum(words)


@jax.jit
def _weighted_sum(words: jax.Array) -> jax.Array:
    words = words.astype(_WORD.dtype)
    place = jnp.zeros((), _WORD.dtype)
    for axis in range(words.ndim):
        stride = math.prod(words.shape[axis + 1 :]) % 2**_WORD.bits
        place += jax.lax.broadcasted_iota(_WORD.dtype, words.shape, axis) * np.uint32(stride)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        place = (place ^ (place >> shift)) * np.uint32(factor)
    return jnp.sum(words * (place ^ (place >> 16) | 1), dtype=_WORD.dtype)
