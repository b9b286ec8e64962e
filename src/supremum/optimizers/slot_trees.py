"""The state of an optax transformation: the slots of each variable, and their names.

Optax gets the parameters as a flat dict by key. The functions here rely on it: every tree in the state that has the
structure of the parameters is a dict with the same keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Set
from typing import Any

import jax
import jax.numpy as jnp

Keys = Set[str]


def _is_by_key(keys: Keys) -> Callable[[Any], bool]:
    return lambda node: type(node) is dict and node.keys() == keys


def _map_by_key(function: Callable[[dict[str, Any]], Any], slots: Any, keys: Keys) -> Any:
    is_by_key = _is_by_key(keys)

    def mapped(node: Any) -> Any:
        return function(node) if is_by_key(node) else node

    return jax.tree.map(mapped, slots, is_leaf=is_by_key)


def select(slots: Any, keys: Keys, kept: Keys) -> Any:
    """Return the slots of some of the variables.

    Args:
        slots: a state.
        keys: the keys of all variables.
        kept: the keys of the variables to keep.
    """
    return _map_by_key(lambda node: {key: node[key] for key in node if key in kept}, slots, keys)


def rename(slots: Any, names: Mapping[str, str]) -> Any:
    """Rename the keys of the slots.

    Args:
        slots: a state.
        names: the new key for each old key.
    """
    return _map_by_key(lambda node: {names[key]: leaf for key, leaf in node.items()}, slots, names.keys())


def merge(slots: Any, keys: Keys, part: Any, part_keys: Keys) -> Any:
    """Replace the slots of some variables, and the leaves that belong to no variable.

    Args:
        slots: a state.
        keys: the keys of its variables.
        part: a state of some of the variables, with the same structure.
        part_keys: the keys of the variables in `part`.
    """
    is_by_key = _is_by_key(keys)
    before = jax.tree.leaves(slots, is_leaf=is_by_key)
    after, structure = jax.tree.flatten(part, is_leaf=_is_by_key(part_keys))
    merged = [{**old, **new} if is_by_key(old) else new for old, new in zip(before, after, strict=True)]
    return jax.tree.unflatten(structure, merged)


def names_of(slots: Any) -> list[str]:
    """Name the leaves of a state in order, such as `"mu/dense/kernel"` or `"count"`.

    A name consists of the names of fields and keys. It does not contain the place in a chain: names stay the same if
    clipping is put before an optimizer. If two parts of a chain have a field of the same name, the second is
    `"trace_1/..."`.
    """
    places: dict[str, dict[Any, int]] = defaultdict(dict)
    found: list[str] = []
    for path, _ in jax.tree_util.tree_leaves_with_path(slots):
        words = [_word(entry) for entry in path if not _is_place(entry)]
        field, *rest = words or ["state"]
        place = tuple(entry.idx for entry in path if _is_place(entry))
        number = places[field].setdefault(place, len(places[field]))
        found.append("/".join([f"{field}_{number}" if number else field, *rest]))
    return found


def _is_place(entry: Any) -> bool:
    return isinstance(entry, jax.tree_util.SequenceKey)


def _word(entry: Any) -> str:
    return str(entry.name if isinstance(entry, jax.tree_util.GetAttrKey) else entry.key)


def by_name(slots: Any) -> dict[str, jax.Array]:
    """Return the leaves of a state by name."""
    return dict(zip(names_of(slots), jax.tree.leaves(slots), strict=True))


def with_leaves(slots: Any, leaves: Mapping[str, Any]) -> Any:
    """Replace the leaves of a state that have a value in `leaves`, by name."""
    named = by_name(slots)
    return jax.tree.unflatten(jax.tree.structure(slots), [leaves.get(name, leaf) for name, leaf in named.items()])


def carry_over(slots: Any, fresh: Any) -> Any:
    """Copy into a fresh state every leaf of an old state with the same name and shape, in the fresh leaf's dtype."""
    old = by_name(slots)
    kept = {
        name: old[name].astype(leaf.dtype)
        for name, leaf in by_name(fresh).items()
        if name in old and old[name].shape == leaf.shape
    }
    return with_leaves(fresh, kept)


def cast_slots(slots: Any, dtypes: Mapping[str, Any]) -> Any:
    """Cast a state to the dtypes in which it is stored, as strong arrays.

    Args:
        slots: a state in the dtypes of its computation.
        dtypes: the dtype by field, such as `"mu"`; other fields keep their dtype.
    """

    def keep(path: Any, leaf: Any) -> jax.Array:
        array = jnp.asarray(leaf)
        fields = [entry.name for entry in path if isinstance(entry, jax.tree_util.GetAttrKey)]
        dtype = next((dtypes[field] for field in fields if dtypes.get(field) is not None), array.dtype)
        return jnp.asarray(array, dtype)

    return jax.tree_util.tree_map_with_path(keep, slots)


def cast_like(slots: Any, like: Any) -> Any:
    """Cast a state to the dtypes of another state; dtypes must not change from step to step."""

    def cast(leaf: Any, model: Any) -> jax.Array:
        return jnp.asarray(leaf, model.dtype)

    return jax.tree.map(cast, slots, like)
