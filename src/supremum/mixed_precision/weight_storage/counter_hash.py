"""Random bits as a hash of a counter: a function of seed, step, path and index, in integer operations that XLA fuses.

The hash mixes 32-bit words with xor, shifts and three odd multipliers (Wellons, 2018, "triple32"). Hashes with two,
such as "lowbias32" and the finalizer of MurmurHash3, fail the chi-squared test for indices 256 and 4096 apart. Unlike
the bits of `jax.random`, its bits cost no memory: each is computed where it is used.
"""

from __future__ import annotations

import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_FIRST, _SECOND, _THIRD = np.uint32(0xED5AD4BB), np.uint32(0xAC4C1B51), np.uint32(0x31848BAB)
_GOLDEN = np.uint32(0x9E3779B9)  # 2**32 divided by the golden ratio; any odd number without a pattern would do


def mixed(word: jax.Array, between: Any = 0) -> jax.Array:
    """Mix the bits of 32-bit words, so that each input bit changes each output bit with probability 1/2.

    Args:
        word: uint32, any shape.
        between: a uint32 word that is added halfway, so that a stream has a key of 64 bits and not of 32.

    >>> hex(int(mixed(jnp.uint32(1)))), hex(int(mixed(jnp.uint32(2))))
    ('0x42741d6', '0xf1dfe8e9')
    """
    word = (word ^ (word >> 17)) * _FIRST
    word = ((word ^ (word >> 11)) + jnp.uint32(between)) * _SECOND
    word = (word ^ (word >> 15)) * _THIRD
    return word ^ (word >> 14)


def step_key(seed: int, path: str, step: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the two words that choose the bits of an array in a step.

    Args:
        seed: the seed, from 0 to 2**32 - 1.
        path: the path of the array.
        step: the number of the step, an integer scalar.
    """
    name = path.encode()
    places = (np.uint32(zlib.crc32(name)), np.uint32(zlib.crc32(name[::-1] + b"/")))
    counter = jnp.asarray(step).astype(jnp.uint32)
    first = mixed(mixed(jnp.uint32(seed) ^ places[0]) + counter * _GOLDEN)
    return first, mixed(first ^ places[1], between=counter)


def random_bits(key: tuple[jax.Array, jax.Array], shape: tuple[int, ...]) -> jax.Array:
    """Return uniform 32-bit words, each a function of the key and its index.

    The index is that in the whole array, so that an array has the same bits on one device and on many.

    Args:
        key: the result of `step_key`.
        shape: the shape of the whole array.

    >>> bits = random_bits(step_key(0, "dense/kernel", jnp.int32(3)), (2, 3))
    >>> bits.dtype, bits.shape
    (dtype('uint32'), (2, 3))
    """
    index = jnp.zeros(shape, jnp.uint32)
    stride = 1
    for axis in reversed(range(len(shape))):
        # An iota for each axis is partitioned with the array; one that is reshaped would be gathered.
        index += jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * np.uint32(stride % 2**32)
        stride *= shape[axis]
    return mixed(index ^ key[0], between=key[1])
