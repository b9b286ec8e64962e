"""Loss, loss scale and skips of each step, kept on the device, since fetching them one by one is slow."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

CAPACITY = 1024
"""How many steps are kept before they are fetched, if no more are sent at once."""


class StepLog(NamedTuple):
    """Rows of the loss, unscaled, the factor it was scaled by, and whether the step was skipped.

    Attributes:
        rows: shape (capacity, 3), floating.
        length: how many rows there are, an integer scalar.
    """

    rows: jax.Array
    length: jax.Array

    @classmethod
    def empty(cls, capacity: int = CAPACITY) -> StepLog:
        """No steps.

        Args:
            capacity: how many there is room for.
        """
        return cls(jnp.zeros((capacity, 3), float), jnp.zeros((), "int32"))

    def add(self, loss: jax.Array, loss_scale: jax.Array, skipped: jax.Array) -> StepLog:
        """The log with one more step.

        Args:
            loss: the loss before the step, unscaled, a scalar.
            loss_scale: the factor it was scaled by.
            skipped: whether the gradients were not finite and nothing was changed.
        """
        row = jnp.stack([each.astype(self.rows.dtype) for each in (loss, loss_scale, skipped)])
        return StepLog(jax.lax.dynamic_update_index_in_dim(self.rows, row, self.length, 0), self.length + 1)

    def fetch(self) -> Any:
        """The rows there are, as an array of NumPy, shape (steps, 3)."""
        rows, length = jax.device_get(tuple(self))
        return np.asarray(rows[: int(length)], np.float64)
