"""The state of an optimizer, and the result of a step."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax


class OptimizerState(NamedTuple):
    """The arrays that an optimizer changes, all strong.

    Args:
        iterations: the number of applied steps, an integer scalar.
        hyperparameters: the numbers by name, float32 scalars; without schedules.
        slots: the state of the optax transformation; None before the optimizer has variables.
    """

    iterations: jax.Array
    hyperparameters: dict[str, jax.Array]
    slots: Any


class Update(NamedTuple):
    """The result of a step.

    Args:
        values: the new values of the variables, by key.
        state: the new state of the optimizer.
        alongside: the new values that belong to the step, such as running statistics; the old values in a skipped step.
        skipped: bool scalar, whether the step was skipped.
    """

    values: dict[str, jax.Array]
    state: Any
    alongside: Any
    skipped: jax.Array
