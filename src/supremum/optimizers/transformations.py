"""The state of an optax transformation: its slots by variable and by name, and its injected hyperparameters.

Optax gets the parameters as a flat dict by key. The functions here rely on it: every tree in the state that has the
structure of the parameters is a dict with the same keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Set
from typing import Any

import jax
import jax.numpy as jnp
import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.errors import ArgumentError, UnknownNameError, shown
from supremum.mixed_precision import is_floating, read_moments, store_moments
from supremum.typing import PyTree

_INJECTED: Any = optax.InjectStatefulHyperparamsState

# Slots by the keys of the variables


def _is_by_key(keys: Set[str]) -> Callable[[Any], bool]:
    return lambda node: type(node) is dict and node.keys() == keys


def rekey(slots: PyTree, keys: Set[str], names: Mapping[str, str]) -> Any:
    """Keep the slots of some of the variables, under new keys.

    Args:
        slots: a state.
        keys: the keys of all variables.
        names: the new key for each old key that is kept.
    """
    is_by_key = _is_by_key(keys)

    def rename(node: Any) -> Any:
        return {names[key]: leaf for key, leaf in node.items() if key in names} if is_by_key(node) else node

    return jax.tree.map(rename, slots, is_leaf=is_by_key)


def merge(slots: PyTree, keys: Set[str], part: PyTree, part_keys: Set[str]) -> Any:
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


# Slots by name, for checkpoints


def by_name(slots: PyTree) -> dict[str, jax.Array]:
    """Return the leaves of a state, in order, by names such as `"mu/dense/kernel"` or `"count"`.

    A name consists of the names of fields and keys. It does not contain the place in a chain: names stay the same if
    clipping is put before an optimizer. If two parts of a chain have a field of the same name, the second is
    `"trace_1/..."`.
    """
    places: dict[str, dict[Any, int]] = defaultdict(dict)
    leaves: dict[str, jax.Array] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(slots):
        field, *rest = [_word(entry) for entry in path if not _is_place(entry)] or ["state"]
        place = tuple(entry.idx for entry in path if _is_place(entry))
        number = places[field].setdefault(place, len(places[field]))
        leaves["/".join([f"{field}_{number}" if number else field, *rest])] = leaf
    return leaves


def _is_place(entry: Any) -> bool:
    return isinstance(entry, jax.tree_util.SequenceKey)


def _word(entry: Any) -> str:
    return str(entry.name if isinstance(entry, jax.tree_util.GetAttrKey) else entry.key)


def replace_leaves(slots: PyTree, leaves: Mapping[str, Any]) -> Any:
    """Replace the leaves of a state that have a value in `leaves`, by name."""
    named = by_name(slots)
    return jax.tree.unflatten(jax.tree.structure(slots), [leaves.get(name, leaf) for name, leaf in named.items()])


def carry_over(slots: PyTree, fresh: PyTree) -> Any:
    """Copy into a fresh state every leaf of an old state with the same name and shape, stored as the fresh leaf."""
    old, wide = by_name(read_moments(slots)), read_moments(fresh)
    leaves = {
        name: old[name].astype(leaf.dtype)
        for name, leaf in by_name(wide).items()
        if name in old and old[name].shape == leaf.shape
    }
    return store_moments(replace_leaves(wide, leaves), fresh)


# Hyperparameters that `optax.inject_hyperparams` stores in a state


def _is_injected(node: Any) -> bool:
    return isinstance(node, _INJECTED)


def extract_numbers(slots: PyTree, names: Container[str] | None = None) -> tuple[Any, dict[str, Any]]:
    """Split a state into its settable numbers, by name, and the state without them.

    Numbers from an optax schedule stay in the state.

    Args:
        slots: a state.
        names: the numbers to extract; None for all.

    Raises:
        ArgumentError: if two parts of a chain have a number of the same name.
    """
    numbers: dict[str, Any] = {}

    def take(node: Any) -> Any:
        if not _is_injected(node):
            return node
        scheduled, rest = node.hyperparams_states, dict(node.hyperparams)
        for name, value in node.hyperparams.items():
            if name in scheduled or not is_floating(value) or (names is not None and name not in names):
                continue
            if name in numbers:
                raise ArgumentError(
                    f"two parts of the transformation have a hyperparameter {shown(name)}: inject it in only one part"
                )
            numbers[name], rest[name] = value, None  # None marks the place of the number; it is not a leaf
        return node._replace(hyperparams=rest)

    return jax.tree.map(take, slots, is_leaf=_is_injected), numbers


def insert_numbers(slots: PyTree, numbers: Mapping[str, Any]) -> Any:
    """Put the numbers back into a state; the inverse of `extract_numbers`."""

    def give(node: Any) -> Any:
        if not _is_injected(node):
            return node
        all_numbers = {name: numbers[name] if v is None else v for name, v in node.hyperparams.items()}
        return node._replace(hyperparams=all_numbers)

    return jax.tree.map(give, slots, is_leaf=_is_injected)


def injected_numbers(
    transformation: optax.GradientTransformation, overrides: Mapping[str, Any], kind: str
) -> dict[str, Any]:
    """Return the injected numbers of a transformation by name, with those that are given instead.

    They are only visible in a state. There are none if no state can be made without the variables, as with a mask by
    their names.

    Args:
        transformation: an optax transformation.
        overrides: numbers by name.
        kind: the class of the optimizer, for the error.

    Raises:
        UnknownNameError: for a number that is not injected.
    """
    try:
        with jax.ensure_compile_time_eval():
            state = transformation.init({"": jnp.zeros((), jnp.float32)})
    except (ValueError, TypeError, KeyError, AttributeError):
        state = None
    injected = extract_numbers(state)[1]
    for name in overrides:
        if name not in injected:
            raise UnknownNameError("hyperparameter", name, injected, repr(kind))
    return {**injected, **overrides}


# Transformations


def call_text(name: str, config: Mapping[str, Any]) -> str:
    """Describe an optimizer by its name and its settings that are not off.

    Args:
        name: the name of its class.
        config: its constructor arguments.
    """
    off = {"ema_momentum"} if not config["use_ema"] else ()
    used = {key: value for key, value in config.items() if key not in off and value is not False}
    return f"{name}({', '.join(f'{key}={_text(value)}' for key, value in used.items() if value not in (None, ()))})"


def _text(value: object) -> str:
    """The `repr` of a setting. Optax's own, a pair of functions with their addresses, does not name its maker."""
    if not isinstance(value, optax.GradientTransformation):
        return repr(value)
    maker = getattr(value.init, "__qualname__", "").partition(".")[0]
    return f"<optax transformation of {maker}()>" if maker.isidentifier() else "<optax transformation>"
