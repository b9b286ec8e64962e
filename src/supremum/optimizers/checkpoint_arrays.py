"""Checks of the arrays that are loaded into an optimizer, made before anything changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import is_iterable
from supremum.errors import ArgumentError, OperandError, UnknownNameError, listed, shown
from supremum.formats import as_format
from supremum.mixed_precision import described, is_array
from supremum.optimizers import slot_trees
from supremum.optimizers.state import OptimizerState
from supremum.optimizers.traced_state import copied

SCALE_PREFIX = "loss_scale/"
"""The prefix of the names of a loss scale's arrays; optimizers without a loss scale ignore them."""


def named_arrays(state: OptimizerState, hyperparameters: Iterable[str]) -> dict[str, jax.Array]:
    """Copies of the arrays of a state by name.

    Args:
        state: the state.
        hyperparameters: the names of the hyperparameters, in order.
    """
    # jit gives dicts back with their keys sorted; the order of names does not depend on that.
    numbers = {name: state.hyperparameters[name] for name in hyperparameters if name in state.hyperparameters}
    found = {"iterations": state.iterations, **numbers, **slot_trees.by_name(state.slots)}
    copies = copied(found)
    return {name: copies[name] for name in found}


def without_scale(saved: Any) -> dict[str, Any]:
    """The saved arrays without those of a loss scale.

    Raises:
        OperandError: for anything that is not a mapping.
    """
    if not isinstance(saved, Mapping):
        raise OperandError(f"load_variables takes arrays by name, got {type(saved).__name__}: set_weights takes a list")
    return {name: each for name, each in saved.items() if not str(name).startswith(SCALE_PREFIX)}


def checked_arrays(saved: Mapping[str, Any], current: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Check saved arrays against the current ones, and return them as JAX arrays; counts may have any integer dtype.

    Raises:
        UnknownNameError: for a name that is not there.
        ArgumentError: for a name that is missing, or a value of another shape or dtype, or a count out of range.
    """
    for name in saved:
        if name not in current:
            raise UnknownNameError("variable of the optimizer", name, current)
    missing = [name for name in current if name not in saved]
    if missing:
        raise ArgumentError(f"no value for {listed(missing)}, variables of the optimizer: build it for the same ones")
    return {name: _checked(name, saved[name], like) for name, like in current.items()}


def _checked(name: str, value: Any, like: jax.Array) -> jax.Array:
    if not is_array(value):
        raise ArgumentError(f"{shown(name)} must be an array of {described(like)}, got {shown(value)}")
    row, wanted = as_format(value.dtype), as_format(like.dtype)
    is_count = wanted.category == "integer" == row.category and value.shape == like.shape == ()
    if value.shape != like.shape or (row != wanted and not is_count):
        raise ArgumentError(f"{shown(name)} is {described(like)} in this optimizer, and {described(value)} was given")
    if is_count and not wanted.min <= int(value) <= wanted.max:
        raise ArgumentError(f"{shown(name)} is {int(value)}, and {wanted} holds up to {wanted.max}")
    # A copy: the step donates what it replaces.
    return jnp.array(np.asarray(value) if is_count else value, wanted.dtype)


def checked_weights(weights: Any, current: Mapping[str, jax.Array]) -> dict[str, Any]:
    """The arrays of a list by name, in the order of the current arrays.

    Raises:
        OperandError: for anything that is not a list of arrays.
        ArgumentError: for another number of them.
    """
    if isinstance(weights, Mapping) or not is_iterable(weights):
        raise OperandError(f"set_weights takes a list of arrays, got {type(weights).__name__}: use load_variables")
    found = list(weights)
    if len(found) != len(current):
        raise ArgumentError(f"the optimizer has {len(current)} variables, {listed(current)}, got {len(found)} arrays")
    return dict(zip(current, found, strict=True))
