"""A log of the loss, loss scale and skip of each step, kept on the device, because fetching single steps is slow."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

CAPACITY = 1024
"""How many steps are kept before they are fetched, unless more are sent at once."""


class StepLog(NamedTuple):
    """A log with a row for each step: the unscaled loss, its scale, and whether the step was skipped.

    Attributes:
        rows: shape (capacity, 3), floating-point.
        length: how many rows are used, an integer scalar.
    """

    rows: jax.Array
    length: jax.Array

    @classmethod
    def empty(cls, capacity: int = CAPACITY) -> StepLog:
        """Create an empty log.

        Args:
            capacity: how many steps it has room for.
        """
        return cls(jnp.zeros((capacity, 3), float), jnp.zeros((), "int32"))

    def add(self, loss: jax.Array, loss_scale: jax.Array, skipped: jax.Array) -> StepLog:
        """Return the log with one more step.

        Args:
            loss: the loss before the step, unscaled, a scalar.
            loss_scale: the factor it was scaled by.
            skipped: whether the step was skipped because its gradients were not finite.
        """
        row = jnp.stack([each.astype(self.rows.dtype) for each in (loss, loss_scale, skipped)])
        return StepLog(jax.lax.dynamic_update_index_in_dim(self.rows, row, self.length, 0), self.length + 1)

    def fetch(self) -> Any:
        """Fetch the used rows as a NumPy array, shape (steps, 3)."""
        rows, length = jax.device_get(tuple(self))
        return np.asarray(rows[: int(length)], np.float64)
