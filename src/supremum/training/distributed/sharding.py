"""Placing values on the same devices as existing values of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from supremum.mixed_precision import keep_64_bits


def committed(values: Mapping[str, jax.Array]) -> dict[str, jax.ShapeDtypeStruct]:
    """Return the shape, dtype and sharding of the values that are committed to devices, by name.

    Args:
        values: arrays by name.
    """
    return {name: _spec(value) for name, value in values.items() if value.committed}


def placed(array: Any, sharding: jax.sharding.Sharding) -> jax.Array:
    """Return the array itself if it is a JAX array with this sharding, otherwise a copy placed there.

    Args:
        array: a NumPy array, the same in every process, or a JAX array.
        sharding: where its parts go.

    >>> placed(np.ones(2, "float32"), jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    Array([1., 1.], dtype=float32)
    """
    if isinstance(array, jax.Array) and array.sharding == sharding:
        return array
    # JAX may keep using the memory that it is given, even with may_alias=False, so it gets a copy.
    whole = np.array(array)
    if sharding.is_fully_addressable:
        return jax.device_put(keep_64_bits(whole), sharding)
    return jax.make_array_from_callback(whole.shape, sharding, lambda part: keep_64_bits(whole[part]))


def placed_alike(tree: Any, like: Any) -> Any:
    """Place a tree of JAX arrays on the devices of another tree with the same structure.

    Args:
        tree: arrays that have no other references.
        like: the result of `specs` for the other tree.
    """

    def place(spec: jax.ShapeDtypeStruct | None, array: Any) -> Any:
        return array if spec is None or spec.sharding is None else placed(array, spec.sharding)

    return jax.tree.map(place, like, tree, is_leaf=lambda each: each is None)


def specs(tree: Any) -> Any:
    """Return the shape, dtype and sharding of each array that is committed to devices, and None for the others."""
    return jax.tree.map(_spec_if_committed, tree)


def _spec_if_committed(value: jax.Array) -> jax.ShapeDtypeStruct | None:
    return _spec(value) if value.committed else None


def _spec(value: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=value.sharding)
