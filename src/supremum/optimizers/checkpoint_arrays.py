"""Checks of saved arrays, before an optimizer loads any of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import chosen, is_iterable
from supremum.errors import ArgumentError, OperandError, listed, shown
from supremum.formats import as_format
from supremum.mixed_precision import described, is_array
from supremum.optimizers import transformations
from supremum.optimizers.state import OptimizerState, copy_state
from supremum.typing import ArrayLike

SCALE_PREFIX = "loss_scale/"
"""The prefix of the names of a loss scale's arrays; optimizers without a loss scale ignore them."""


def arrays_by_name(state: OptimizerState, hyperparameters: Iterable[str]) -> dict[str, jax.Array]:
    """Copy the arrays of a state, by name.

    Args:
        state: the state.
        hyperparameters: the names of the hyperparameters, in order.
    """
    # jit returns dicts with their keys sorted; the names here keep their order.
    numbers = {name: state.hyperparameters[name] for name in hyperparameters if name in state.hyperparameters}
    arrays = {"iterations": state.iterations, **numbers, **transformations.by_name(state.slots)}
    return dict(zip(arrays, copy_state(list(arrays.values())), strict=True))


def without_scale(saved: object) -> dict[str, Any]:
    """Return saved arrays without the arrays of a loss scale.

    Raises:
        OperandError: for anything that is not a mapping.
    """
    if not isinstance(saved, Mapping):
        raise OperandError(
            f"load_variables needs a dict of arrays by name, got {type(saved).__name__}: for a list use set_weights"
        )
    return {name: each for name, each in saved.items() if not str(name).startswith(SCALE_PREFIX)}


def check_arrays(saved: Mapping[str, Any], current: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    """Check saved arrays against the current ones, and return them as JAX arrays; counts may have any integer dtype.

    Raises:
        UnknownNameError: for an unknown name.
        ArgumentError: for a missing name, a value of a different shape or dtype, or a count out of range.
    """
    for name in saved:
        chosen("variable of the optimizer", name, current)
    missing = [name for name in current if name not in saved]
    if missing:
        raise ArgumentError(
            f"no value for {listed(missing)}: the optimizer must be built for the variables that were saved"
        )
    return {name: _check(name, saved[name], like) for name, like in current.items()}


def _check(name: str, value: Any, like: jax.Array) -> jax.Array:
    if not is_array(value):
        raise ArgumentError(f"{shown(name)} must be an array ({described(like)}), got {shown(value)}")
    row, wanted = as_format(value.dtype), as_format(like.dtype)
    is_count = wanted.category == "integer" == row.category and value.shape == like.shape == ()
    if value.shape != like.shape or (row != wanted and not is_count):
        raise ArgumentError(f"{shown(name)} must be {described(like)} in this optimizer, got {described(value)}")
    if is_count and not wanted.min <= int(value) <= wanted.max:
        raise ArgumentError(f"{shown(name)} must be from {wanted.min} to {wanted.max} ({wanted}), got {int(value)}")
    # Steps donate the arrays of a state, hence the copy.
    return jnp.array(np.asarray(value) if is_count else value, wanted.dtype)


def by_name(weights: Iterable[ArrayLike], current: Mapping[str, jax.Array]) -> dict[str, Any]:
    """Name the arrays of a list, which is in the order of the current arrays.

    Raises:
        OperandError: for anything that is not a list of arrays.
        ArgumentError: for a wrong number of arrays.
    """
    if isinstance(weights, Mapping) or not is_iterable(weights):
        raise OperandError(
            f"set_weights needs a list of arrays, got {type(weights).__name__}: for a dict use load_variables"
        )
    arrays = list(weights)
    if len(arrays) != len(current):
        raise ArgumentError(f"set_weights needs {len(current)} arrays, for {listed(current)}, got {len(arrays)} arrays")
    return dict(zip(current, arrays, strict=True))
