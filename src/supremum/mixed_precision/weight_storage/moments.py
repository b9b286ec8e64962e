"""Moments in few bits: a 16-bit dtype, or 8 bits and a scale for each block of 256 elements.

Dettmers and others, 2021, "8-bit Optimizers via Block-wise Quantization", arXiv:2110.02861.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from supremum.errors import ArgumentError, listed, shown
from supremum.formats import Format, Kind, as_format
from supremum.mixed_precision.path_patterns import check_pattern, matches, scopes_of
from supremum.mixed_precision.pytrees import is_floating, widen
from supremum.mixed_precision.weight_storage.places import find_places
from supremum.mixed_precision.weight_storage.rounding import is_roundable, round_to_format
from supremum.typing import DTypeLike, PyTree

BLOCK = 256
"""Elements that share a scale, in the order of the flattened array."""
DYNAMIC = "dynamic8"
"""The name of the 8-bit map of 8-bit Adam."""
_NON_NEGATIVE = frozenset({"nu", "nu_max", "sum_of_squares"})
"""Fields of states, of optax and of Supremum, that are never negative; their map has no sign."""
# Below it, quotients would be subnormal. Torchao has 1e-12, which squares of small gradients do not reach.
_SMALLEST = np.float32(2.0**-100)
_WIDE = as_format("float32")
_DECADES = 7
_SCALED_BITS = 8  # without a scale, most moments would be zero in a format of 8 bits


class BlockScaled(NamedTuple):
    """An array in 8 bits, and a float32 scale for each block of 256 elements.

    Args:
        codes: the elements divided by their scales, in the shape of the array: in a floating format, or as the places
            in a dynamic map; int8 for the map with signs, uint8 for the map without.
        scales: the scale of each block, float32: the largest magnitude in the block is the largest of the format.

    >>> import optax
    >>> from supremum.mixed_precision import narrow_weights
    >>> optimizer = narrow_weights(optax.adam(1e-3), moments={"mu": "dynamic8"})
    >>> mean = (
    ...     optimizer.init({"kernel": jnp.ones(512, "bfloat16")}).inner[0].mu["kernel"]
    ... )
    >>> mean.codes.dtype, mean.codes.shape, mean.scales.shape
    (dtype('int8'), (512,), (2,))
    """

    codes: jax.Array
    scales: jax.Array


def is_block_scaled(node: object) -> bool:
    """Whether a node of a tree is a `BlockScaled`."""
    return isinstance(node, BlockScaled)


@lru_cache(maxsize=2)
def dynamic_map(signed: bool) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The 256 numbers of the dynamic map of 8-bit Adam, in ascending order, from 0 or -0.99297 to 1.

    Seven decades, the top one from 0.1 to 1, have 1, 2, 4, ... 64 numbers of each sign, or 2, 4, ... 128 without signs:
    the midpoints of equal intervals. Zero and 1 are added.

    Args:
        signed: whether it has negative numbers.

    >>> numbers = dynamic_map(False)
    >>> len(numbers), numbers[:2], numbers[-2:]
    (256, array([0.00e+00, 3.25e-07], dtype=float32), array([0.9964844, 1.       ], dtype=float32))
    """
    numbers = [np.asarray([0.0, 1.0])]
    for decade in range(_DECADES):
        bounds = np.linspace(0.1, 1, _intervals(decade, signed) + 1)
        positive = _power(decade) * (bounds[:-1] + bounds[1:]) / 2
        numbers += [positive, -positive] if signed else [positive]
    return np.sort(np.concatenate(numbers)).astype(np.float32)


def _intervals(decade: int, signed: bool) -> int:
    return 2 ** (decade + (not signed))


def _power(decade: int) -> float:
    """Return the upper end of a decade."""
    return 10.0 ** (decade + 1 - _DECADES)


# Names of storage


def storage_of_moments(name: DTypeLike) -> Format | None:
    """Check the storage of a moment, and return its format; None for the dynamic map.

    Raises:
        UnknownDtypeError: for an unknown dtype.
        ArgumentError: for a dtype that cannot hold moments.
    """
    if isinstance(name, str) and name == DYNAMIC:
        return None
    row = as_format(name)
    if row.kind is not Kind.FLOAT or not (is_roundable(row) or row.holds(_WIDE)):
        raise ArgumentError(f"moments need a real floating dtype with zero, a sign and NaN, got {row}: use 'bfloat16'")
    return row


def check_moments(moments: object) -> dict[str, Any]:
    """Check the patterns and names in a mapping of moments."""
    if not isinstance(moments, Mapping):
        raise ArgumentError(f"moments must be a mapping such as {{'mu': 'bfloat16'}}, got {shown(moments)}")
    for pattern, name in moments.items():
        check_pattern(pattern, "moments")
        storage_of_moments(name)
    return dict(moments)


# Storing and reading


def store_array(array: jax.Array, name: DTypeLike, *, signed: bool) -> Any:
    """Store a float32 array.

    Args:
        array: float32, or float64 for a dtype that is as wide.
        name: a dtype, or `"dynamic8"`.
        signed: whether the dynamic map needs signs.
    """
    row = storage_of_moments(name)
    if row is None:
        return _to_map(array.astype(jnp.float32), signed)
    if row.bits >= _WIDE.bits:
        return array.astype(row.dtype)
    array = array.astype(jnp.float32)
    return _scaled(array, row) if row.bits <= _SCALED_BITS else round_to_format(array, row)


def store_moment(array: jax.Array, name: DTypeLike, field: str) -> Any:
    """Store a float32 array that is in a field of an optimizer's state, which says whether it may be negative."""
    return store_array(array, name, signed=field not in _NON_NEGATIVE)


def store_like(value: jax.Array, old: jax.Array | BlockScaled) -> Any:
    """Store an array as an older one is stored."""
    if isinstance(old, BlockScaled):
        category = as_format(old.codes.dtype)
        if category.category == "integer":
            return _to_map(value, signed=category.signed)
        return _scaled(value, category)
    row = as_format(old.dtype)
    if is_floating(value) and row.bits < as_format(value.dtype).bits == _WIDE.bits and is_roundable(row):
        return round_to_format(value, row)
    return jnp.asarray(value, old.dtype)


def read(node: object) -> Any:
    """Read a leaf of a state in at least float32; leaves that are not floating stay as they are."""
    if not isinstance(node, BlockScaled):
        return widen(node)
    row = as_format(node.codes.dtype)
    if row.category == "integer":
        numbers = jnp.asarray(dynamic_map(row.signed))
        values = numbers[node.codes.astype(jnp.int32) - int(row.min)]
    else:
        values = node.codes.astype(jnp.float32)
    return _unblocked(_blocked(values) * node.scales[:, None], values.shape)


def read_moments(state: PyTree) -> Any:
    """Read the moments of a state in at least float32."""
    return jax.tree.map(read, state, is_leaf=is_block_scaled)


def store_moments(state: PyTree, old: PyTree) -> Any:
    """Store the moments of a state as those of an older state are stored."""

    def store(before: Any, after: Any) -> Any:
        return store_like(after, before)

    return jax.tree.map(store, old, state, is_leaf=is_block_scaled)


def store_first(state: PyTree, params: PyTree, moments: Mapping[str, Any]) -> Any:
    """Store the moments of a new state in the storage that a mapping names.

    Args:
        state: the state that an optimizer made for `params`.
        params: the parameters.
        moments: storage by pattern of the field and the path, such as `"mu"` or `"nu/dense/kernel"`.

    Raises:
        ArgumentError: for a pattern that matches nothing.
    """
    leaves, structure = jax.tree.flatten(state)
    places = find_places(state, params)
    used: set[str] = set()

    def store(leaf: Any, place: Any) -> Any:
        if not is_floating(leaf):
            return leaf
        scopes = scopes_of(place.name)
        pattern = next((each for each in moments if matches(each, scopes)), None)
        if pattern is None:
            return leaf
        used.add(pattern)
        return store_moment(leaf, moments[pattern], place.field)

    stored = [store(leaf, place) for leaf, place in zip(leaves, places, strict=True)]
    dead = [pattern for pattern in moments if pattern not in used]
    if dead:
        fields = dict.fromkeys(place.field for leaf, place in zip(leaves, places, strict=True) if is_floating(leaf))
        raise ArgumentError(
            f"moments has {listed(dead)}, but the state of the optimizer has "
            f"{'the moments ' + listed(fields) if fields else 'no moments'}; remove {shown(dead[0])}"
        )
    return jax.tree.unflatten(structure, stored)


def _blocked(array: jax.Array) -> jax.Array:
    flat = array.ravel()
    return jnp.pad(flat, (0, -len(flat) % BLOCK)).reshape(-1, BLOCK)


def _unblocked(blocks: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    size = int(np.prod(shape))
    return blocks.ravel()[:size].reshape(shape)


def _scales(blocks: jax.Array) -> jax.Array:
    return jnp.maximum(jnp.max(jnp.abs(blocks), axis=1), _SMALLEST)


def _scaled(array: jax.Array, row: Format) -> BlockScaled:
    blocks = _blocked(array)
    scales = _scales(blocks) / np.float32(row.max)
    return BlockScaled(round_to_format(_unblocked(blocks / scales[:, None], array.shape), row), scales)


def _to_map(array: jax.Array, signed: bool) -> BlockScaled:
    row = as_format("int8" if signed else "uint8")
    blocks = _blocked(array)
    scales = _scales(blocks)
    shares = _unblocked(blocks / scales[:, None], array.shape)
    rank = _rank(jnp.abs(shares), signed)
    # The map with signs has 1, but not -1.
    place = jnp.where(shares < 0, -jnp.minimum(rank, 127), rank) - 1 if signed else rank
    return BlockScaled(place.astype(row.dtype), scales)


def _rank(share: jax.Array, signed: bool) -> jax.Array:
    """Return how many numbers of the dynamic map between 0 and a share the nearest number is away from 0.

    Within a decade, the bounds of intervals are halfway between the numbers. A search in the map would take longer than
    the rest of a step.

    Args:
        share: float32, from 0 to 1.
        signed: whether the map has negative numbers.
    """
    numbers = dynamic_map(signed)
    positive = numbers[numbers > 0]
    start, offset, slope = (jnp.zeros_like(share) for _ in range(3))
    last = jnp.zeros_like(share)
    for decade in range(_DECADES):
        count = _intervals(decade, signed)
        first = sum(_intervals(lower, signed) for lower in range(decade))
        below = positive[first - 1] if first else np.float32(0)
        is_above = share >= (below + positive[first]) / 2
        start = jnp.where(is_above, np.float32(first + 1), start)
        last = jnp.where(is_above, np.float32(first + count), last)
        slope = jnp.where(is_above, np.float32(count / (0.9 * _power(decade))), slope)
        offset = jnp.where(is_above, np.float32(count / 9), offset)
    rank = jnp.clip(start + jnp.floor(share * slope - offset), start, last)
    rank = jnp.where(share >= (positive[-2] + positive[-1]) / 2, np.float32(len(positive)), rank)
    # Shares are NaN in a block with NaN or infinity, whose scale makes it NaN.
    return jnp.where(share >= positive[0] / 2, rank, 0.0).astype(jnp.int32)
