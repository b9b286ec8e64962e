"""Values onto the devices that others of the same name are on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from supremum.mixed_precision import keep_64_bits


def committed(values: Mapping[str, jax.Array]) -> dict[str, jax.ShapeDtypeStruct]:
    """What to place values like, by name: of those that were put onto devices on purpose, not of the others.

    Args:
        values: arrays by name.
    """
    return {name: _spec(value) for name, value in values.items() if value.committed}


def placed(array: Any, sharding: jax.sharding.Sharding) -> jax.Array:
    """The array itself, if it is one of JAX that is there already, or one there that shares no memory with it.

    Args:
        array: an array of NumPy, the same in every process, or one of JAX.
        sharding: where its parts go.

    >>> placed(np.ones(2, "float32"), jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    Array([1., 1.], dtype=float32)
    """
    if isinstance(array, jax.Array) and array.sharding == sharding:
        return array
    # JAX may go on using the memory of what it is given, may_alias=False or not: it gets a copy.
    whole = np.array(array)
    if sharding.is_fully_addressable:
        return jax.device_put(keep_64_bits(whole), sharding)
    return jax.make_array_from_callback(whole.shape, sharding, lambda part: keep_64_bits(whole[part]))


def placed_alike(tree: Any, like: Any) -> Any:
    """A tree of arrays of JAX on the devices that those of another tree of its structure are on.

    Args:
        tree: arrays that have no other references.
        like: what `specs` gave.
    """

    def place(spec: jax.ShapeDtypeStruct | None, array: Any) -> Any:
        return array if spec is None or spec.sharding is None else placed(array, spec.sharding)

    return jax.tree.map(place, like, tree, is_leaf=lambda each: each is None)


def specs(tree: Any) -> Any:
    """What to place a tree like: for each array that was put onto devices on purpose where that is, else None."""
    return jax.tree.map(_spec_if_committed, tree)


def _spec_if_committed(value: jax.Array) -> jax.ShapeDtypeStruct | None:
    return _spec(value) if value.committed else None


def _spec(value: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=value.sharding)
