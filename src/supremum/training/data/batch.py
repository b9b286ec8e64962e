"""A batch, and blocks of many batches that share the same arrays."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np


class Batch(NamedTuple):
    """The data of one training step.

    Attributes:
        x: the inputs of the model: an array, or the structure of arrays that the model takes.
        y: the labels; None if all losses come from the model itself.
        sample_weight: the weight of each example, shape (batch,); None if all have the same weight.
    """

    x: Any
    y: Any = None
    sample_weight: Any = None


class Selection(NamedTuple):
    """Batches of arrays on the device, given as the indices of their examples.

    Attributes:
        data: all examples.
        order: the indices of the examples of each batch, shape (batches, batch_size).
        position: the index of the first batch.
    """

    data: Batch
    order: jax.Array
    position: jax.Array


def rows_of(batch: Batch, which: Any) -> Batch:
    """Select examples of a batch.

    Args:
        batch: the batch.
        which: the index of the examples, as for any array.
    """
    return jax.tree.map(itemgetter(which), batch)


class Rows(NamedTuple):
    """Batches of arrays on the host, given as the indices of their examples.

    Attributes:
        data: all examples, as NumPy arrays.
        order: the indices of the examples of each batch, shape (batches, batch_size).
    """

    data: Batch
    order: np.ndarray

    def block(self, start: int, count: int) -> Batch:
        """Select consecutive batches, stacked along a new first axis.

        Args:
            start: the index of the first batch.
            count: the number of batches.
        """
        return rows_of(self.data, self.order[start : start + count])


Part: TypeAlias = "Batch | Selection | Rows"
"""A piece of an epoch: one batch, or many batches."""
