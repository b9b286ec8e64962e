"""The state of an optax transformation: what in it belongs to which variable, and what it is called.

Parameters are given to optax as a flat dict by key, so every tree like the parameters in its state is a dict with those
very keys. Everything here goes by that.
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
    """The slots of some variables only.

    Args:
        slots: a state.
        keys: the keys of all variables.
        kept: the keys of those to keep.
    """
    return _map_by_key(lambda node: {key: node[key] for key in node if key in kept}, slots, keys)


def rename(slots: Any, names: Mapping[str, str]) -> Any:
    """The slots with other keys.

    Args:
        slots: a state.
        names: the new key of each old one.
    """
    return _map_by_key(lambda node: {names[key]: leaf for key, leaf in node.items()}, slots, names.keys())


def merge(slots: Any, keys: Keys, part: Any, part_keys: Keys) -> Any:
    """The slots of all variables, with those of some, and what belongs to none, replaced.

    Args:
        slots: a state.
        keys: the keys of its variables.
        part: a state of some of the variables, in a tree of the same shape.
        part_keys: the keys of those.
    """
    is_by_key = _is_by_key(keys)
    before = jax.tree.leaves(slots, is_leaf=is_by_key)
    after, structure = jax.tree.flatten(part, is_leaf=_is_by_key(part_keys))
    merged = [{**old, **new} if is_by_key(old) else new for old, new in zip(before, after, strict=True)]
    return jax.tree.unflatten(structure, merged)


def names_of(slots: Any) -> list[str]:
    """The names of the leaves of a state, in their order, such as `"mu/dense/kernel"` or `"count"`.

    They are the names of fields and keys; places in a chain do not count, so that clipping put before an optimizer
    leaves them as they are. Where two parts of a chain have fields of one name, the second is `"trace_1/..."`.
    """
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(slots)[0]]
    places: dict[str, dict[Any, int]] = defaultdict(dict)
    found: list[str] = []
    for path in paths:
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
    """The leaves of a state by name."""
    return dict(zip(names_of(slots), jax.tree.leaves(slots), strict=True))


def with_leaves(slots: Any, leaves: Mapping[str, Any]) -> Any:
    """A state with the leaves of some names replaced."""
    named = by_name(slots)
    return jax.tree.unflatten(jax.tree.structure(slots), [leaves.get(name, leaf) for name, leaf in named.items()])


def carry_over(slots: Any, fresh: Any) -> Any:
    """A fresh state that takes over every leaf that an old one has under the same name and shape, in its own dtype."""
    old = by_name(slots)
    kept = {
        name: old[name].astype(leaf.dtype)
        for name, leaf in by_name(fresh).items()
        if name in old and old[name].shape == leaf.shape
    }
    return with_leaves(fresh, kept)


def cast_slots(slots: Any, dtypes: Mapping[str, Any]) -> Any:
    """A state in the dtypes that it is kept in, its leaves strong arrays.

    Args:
        slots: a state in the dtypes that it is computed in.
        dtypes: the dtype by field, such as `"mu"`; the fields that are not named keep theirs.
    """

    def keep(path: Any, leaf: Any) -> jax.Array:
        array = jnp.asarray(leaf)
        fields = [entry.name for entry in path if isinstance(entry, jax.tree_util.GetAttrKey)]
        dtype = next((dtypes[field] for field in fields if dtypes.get(field) is not None), array.dtype)
        return jnp.asarray(array, dtype)

    return jax.tree_util.tree_map_with_path(keep, slots)


def cast_like(slots: Any, like: Any) -> Any:
    """A state in the dtypes that another one has: no dtype changes from step to step."""

    def cast(leaf: Any, model: Any) -> jax.Array:
        return jnp.asarray(leaf, model.dtype)

    return jax.tree.map(cast, slots, like)
