"""The state of an optimizer, and what a step returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax


class OptimizerState(NamedTuple):
    """All that an optimizer changes, as strong arrays.

    Args:
        iterations: how many steps were applied, an integer scalar.
        hyperparameters: the numbers, float32 scalars by name; schedules are none.
        slots: what the optax transformation keeps; None before there are variables.
    """

    iterations: jax.Array
    hyperparameters: dict[str, jax.Array]
    slots: Any


class Update(NamedTuple):
    """What a step returns.

    Args:
        values: the new values of the variables, by key.
        state: the new state of the optimizer.
        alongside: what was to change with them, or, in a skipped step, what it was before.
        skipped: bool scalar, whether the step was skipped.
    """

    values: dict[str, jax.Array]
    state: Any
    alongside: Any
    skipped: jax.Array
