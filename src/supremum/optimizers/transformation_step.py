"""The pure core of an optimizer: the slots and one step of an optax transformation, on flat dicts of arrays."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import jax
import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.errors import ArgumentError, listed
from supremum.mixed_precision import widen
from supremum.optimizers import injected_hyperparameters, slot_trees


def initial_slots(
    transformation: Any,
    values: Mapping[str, jax.Array],
    names: Container[str],
    dtypes: Mapping[str, Any],
    optimizer: str,
) -> Any:
    """Make the initial slots of a transformation.

    Args:
        transformation: the optax transformation.
        values: the values of the variables, by key.
        names: the names of the hyperparameters, which are not stored in the slots.
        dtypes: the dtype in which each field of the slots is stored, as for `slot_trees.cast_slots`.
        optimizer: the name of the optimizer in error messages.

    Raises:
        ArgumentError: if the transformation cannot be used with these variables.
    """
    wide = {key: widen(value) for key, value in values.items()}
    try:
        slots = optax.with_extra_args_support(transformation).init(wide)
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"the transformation of {optimizer} cannot make a state for the variables {listed(wide)}, "
            f"a flat dict with these keys: {error}"
        ) from error
    return slot_trees.cast_slots(injected_hyperparameters.extract(slots, names)[0], dtypes)


def apply_transformation(
    transformation: Any,
    gradients: Mapping[str, jax.Array],
    slots: Any,
    values: Mapping[str, jax.Array],
    keys: frozenset[str],
    numbers: Mapping[str, Any],
    optimizer: str,
) -> tuple[dict[str, jax.Array], Any]:
    """Take one step of a transformation, computed in at least float32.

    Args:
        transformation: the optax transformation.
        gradients: the gradients by key, at least float32; variables without a gradient keep their values and slots.
        slots: the slots of all variables.
        values: the values of the variables, by key.
        keys: the keys of the variables in the slots.
        numbers: the hyperparameters of the step, by name.
        optimizer: the name of the optimizer in error messages.

    Returns:
        The new values and the new slots, in the dtypes of the old ones.

    Raises:
        ArgumentError: if the transformation cannot take a step on only these variables.
    """
    wide = {key: widen(values[key]) for key in gradients}
    slots = injected_hyperparameters.insert(slots, numbers)
    part = slot_trees.select(slots, keys, gradients.keys())
    update: Any = optax.with_extra_args_support(transformation).update
    try:
        updates, after = update(gradients, jax.tree.map(widen, part), wide)
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"the transformation of {optimizer} cannot take a step on the variables {listed(wide)}. "
            "It must work on gradients and values as flat dicts with these keys, without other arguments such as the "
            f"loss; if a variable has no gradient, a mask must be a function of the dict: {error}"
        ) from error
    slots = slot_trees.merge(slots, keys, slot_trees.cast_like(after, part), gradients.keys())
    changed = {key: (wide[key] + updates[key]).astype(values[key].dtype) for key in gradients}
    return {**values, **changed}, injected_hyperparameters.extract(slots, numbers)[0]
