"""Random bits as a hash of a counter: a function of seed, step, path and index, in integer operations that XLA fuses.

The hash mixes 32-bit words with xor, shifts and three odd multipliers (Wellons, 2018, "triple32"). Hashes with two,
such as "lowbias32" and the finalizer of MurmurHash3, fail the chi-squared test for indices 256 and 4096 apart. Unlike
the bits of `jax.random`, its bits cost no memory: each is computed where it is used.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import whole_number
from supremum.errors import ArgumentError, shown
from supremum.typing import ArrayLike

_FIRST, _SECOND, _THIRD = np.uint32(0xED5AD4BB), np.uint32(0xAC4C1B51), np.uint32(0x31848BAB)
_GOLDEN = np.uint32(0x9E3779B9)  # 2**32 divided by the golden ratio; any odd number without a pattern would do


def mix_bits(word: jax.Array, between: jax.Array | int = 0) -> jax.Array:
    """Mix the bits of 32-bit words, so that each input bit changes each output bit with probability 1/2.

    Args:
        word: uint32, any shape.
        between: a uint32 word that is added halfway, so that a stream has a key of 64 bits and not of 32.

    >>> hex(int(mix_bits(jnp.uint32(1)))), hex(int(mix_bits(jnp.uint32(2))))
    ('0x42741d6', '0xf1dfe8e9')
    """
    word = (word ^ (word >> 17)) * _FIRST
    word = ((word ^ (word >> 11)) + jnp.uint32(between)) * _SECOND
    word = (word ^ (word >> 15)) * _THIRD
    return word ^ (word >> 14)


class StepKey(NamedTuple):
    """The key of the random bits of an array in a step.

    Args:
        first: a uint32 word.
        second: another one.
        is_default: whether nobody gave a seed, so that all members of an ensemble would have this key.
    """

    first: jax.Array
    second: jax.Array
    is_default: bool


def step_key(seed: ArrayLike | None, path: str, step: jax.Array, default: int = 0) -> StepKey:
    """Return the key of the random bits of an array in a step.

    Args:
        seed: the seed, an integer scalar from 0 to 2**32 - 1, which may be traced; None for the default.
        path: the path of the array.
        step: the number of the step, an integer scalar.
        default: the seed if none is given.

    Raises:
        ArgumentError: for a seed out of bounds, and for an array that is not an integer scalar.
    """
    name = path.encode()
    places = (np.uint32(zlib.crc32(name)), np.uint32(zlib.crc32(name[::-1] + b"/")))
    counter = jnp.asarray(step).astype(jnp.uint32)
    first = mix_bits(mix_bits(_seed_word(default if seed is None else seed) ^ places[0]) + counter * _GOLDEN)
    return StepKey(first, mix_bits(first ^ places[1], between=counter), seed is None)


def _seed_word(seed: ArrayLike) -> jax.Array:
    if not isinstance(seed, (jax.Array, np.ndarray)):
        return jnp.uint32(whole_number("seed", seed, 0, 2**32 - 1))
    if seed.shape or not jnp.issubdtype(seed.dtype, jnp.integer):
        raise ArgumentError(
            f"seed must be one integer for each member, got {shown(seed)}: use seed=jnp.arange(members) under jax.vmap"
        )
    return jnp.asarray(seed).astype(jnp.uint32)


def key_of_one(key: StepKey, value: jax.Array) -> StepKey:
    """Return the key, and raise under `jax.vmap` over the value if nobody gave the members their seeds.

    Args:
        key: the key.
        value: the value that is rounded.

    Raises:
        ArgumentError: for an ensemble without seeds, whose members would all round with the same bits.
    """
    if not key.is_default:
        return key
    return StepKey(*_words_of_one((key.first, key.second), jax.lax.stop_gradient(value)), is_default=True)


@jax.custom_batching.custom_vmap
def _words_of_one(words: tuple[jax.Array, jax.Array], _: jax.Array) -> tuple[jax.Array, jax.Array]:
    return words


@_words_of_one.def_vmap
def _words_of_each(
    axis_size: int, in_batched: Any, words: tuple[jax.Array, jax.Array], value: jax.Array
) -> tuple[tuple[jax.Array, jax.Array], Any]:
    words_are_batched, value_is_batched = in_batched
    if value_is_batched:
        raise ArgumentError(
            f"all {axis_size} members of this ensemble would round their weights with the same random bits: give each "
            f"a seed, as in jax.vmap(optimizer.step)(grads, state, params, seed=jnp.arange({axis_size})); "
            "Optimizer.update and the steps of training.train_step take it too"
        )
    return _words_of_one(words, value), words_are_batched  # for an outer `vmap`


def random_bits(key: StepKey, shape: tuple[int, ...]) -> jax.Array:
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
    return mix_bits(index ^ key.first, between=key.second)
