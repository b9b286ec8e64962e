"""Gradients that are added up over several batches, and applied in one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from supremum.mixed_precision import widen
from supremum.optimizers.state import OptimizerState

Step: TypeAlias = Callable[[dict[str, jax.Array], OptimizerState], tuple[dict[str, jax.Array], OptimizerState]]
"""A function of gradients and a state that returns new values of the variables and the next state."""


class Accumulation(NamedTuple):
    """The gradients since the last step.

    Args:
        mini_step: how many were added, an integer scalar.
        gradient_sum: their sums by key, at least float32.
    """

    mini_step: jax.Array
    gradient_sum: dict[str, jax.Array]


def no_gradients(values: Mapping[str, jax.Array]) -> Accumulation:
    """Return the state before the first gradients for these values, in new buffers."""
    return Accumulation(jnp.zeros((), jnp.int32), {key: jnp.zeros_like(widen(value)) for key, value in values.items()})


def accumulate(
    steps: int, step: Step, gradients: Mapping[str, jax.Array], state: OptimizerState, values: Mapping[str, jax.Array]
) -> tuple[dict[str, jax.Array], OptimizerState]:
    """Add gradients to those before; each `steps`-th time take a step with their mean.

    Args:
        steps: how many gradients make a step.
        step: the step.
        gradients: the gradients by key, at least float32.
        state: the state, whose slots are a pair of an `Accumulation` and the slots of the step.
        values: the values of the variables, by key.

    Returns:
        The new or unchanged values, and the next state.
    """
    before, slots = state.slots
    sums = {key: total + gradients[key] if key in gradients else total for key, total in before.gradient_sum.items()}

    def apply() -> tuple[dict[str, jax.Array], OptimizerState]:
        changed, after = step({key: sums[key] / steps for key in gradients}, state._replace(slots=slots))
        # A variable without a gradient in this step keeps what earlier batches gave it.
        rest = {key: jnp.zeros_like(total) if key in gradients else total for key, total in sums.items()}
        return changed, after._replace(slots=(Accumulation(jnp.zeros_like(before.mini_step), rest), after.slots))

    def wait() -> tuple[dict[str, jax.Array], OptimizerState]:
        return dict(values), state._replace(slots=(Accumulation(before.mini_step + 1, sums), slots))

    return jax.lax.cond(before.mini_step + 1 >= steps, apply, wait)
