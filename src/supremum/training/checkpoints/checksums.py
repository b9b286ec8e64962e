"""A checksum of an array that does not depend on how the array is sharded."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.experimental import multihost_utils

from supremum.formats import as_format


def checksum(array: jax.Array | np.ndarray) -> int:
    """Sum the words of an array modulo 2**64, each multiplied by a random odd number for its place along each axis.

    Each process sums its own part of a sharded array, and only the sums are exchanged. Words have at most 32 bits, so
    that a single flipped bit always changes the sum: an odd number times a power of two below 2**64 is not 0 modulo
    2**64. Other damage goes undetected about once in 2**32 if it changes only the top bits of words, else less often.

    Args:
        array: a NumPy array, or a JAX array with any sharding, for which every process must make the call.

    >>> array = np.arange(6, dtype="float32")
    >>> (
    ...     checksum(array) == checksum(jax.numpy.asarray(array)),
    ...     checksum(array) == checksum(-array),
    ... )
    (True, False)
    """
    if isinstance(array, np.ndarray):
        return _sum_of_part(array, (slice(None),) * array.ndim)
    shards = [shard for shard in array.addressable_shards if shard.replica_id == 0]
    total = sum(_sum_of_part(np.asarray(shard.data), shard.index) for shard in shards) % 2**64
    if is_spread(array):
        halves = np.array(divmod(total, 2**32), np.uint32)  # JAX would narrow 64 bits
        total = sum(int(high) * 2**32 + int(low) for high, low in multihost_utils.process_allgather(halves)) % 2**64
    return total


def is_spread(value: Any) -> bool:
    """Whether a value is a JAX array with parts or copies in other processes."""
    return isinstance(value, jax.Array) and not isinstance(value, Tracer) and not value.is_fully_addressable


def _sum_of_part(part: np.ndarray, index: tuple[slice, ...]) -> int:
    """Return the sum of a part of an array.

    Args:
        part: the part.
        index: where in the array it is.
    """
    if not part.size:
        return 0
    sums = np.asarray(part, order="C")[..., None].view(f"u{min(part.itemsize, 4)}")
    bits = as_format(part.dtype).bits
    if bits < 8:  # bits that a format does not use have no meaning, and not every library preserves them
        sums = sums & np.uint8((1 << bits) - 1)
    starts = [place.start or 0 for place in index]
    for axis, start in reversed([*enumerate([*starts, 0])]):
        # The stream of numbers that a seed makes is the same in every version of NumPy.
        numbers = np.random.PCG64(axis).advance(start).random_raw(sums.shape[-1]) | np.uint64(1)
        sums = np.einsum("...i,i", sums, numbers, dtype=np.uint64, casting="safe")
    return int(sums)
