"""A batch, many batches of the same arrays, and what gives them."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np


class Batch(NamedTuple):
    """What one step learns from.

    Attributes:
        x: the inputs of the model: an array, or what structure of arrays it takes.
        y: the labels; None where the model's own losses are all there is.
        sample_weight: how much each example counts, shape (batch,); None for all alike.
    """

    x: Any
    y: Any = None
    sample_weight: Any = None


class Selection(NamedTuple):
    """Batches of arrays that are on the device: which examples of them.

    Attributes:
        data: all examples.
        order: the examples of each batch, shape (batches, batch_size).
        position: the number of the first batch.
    """

    data: Batch
    order: jax.Array
    position: jax.Array


def rows_of(batch: Batch, which: Any) -> Batch:
    """Some of the examples of a batch.

    Args:
        batch: all of them.
        which: what the arrays are indexed with.
    """
    return jax.tree.map(itemgetter(which), batch)


class Rows(NamedTuple):
    """Batches of arrays that are on the host: which examples of them.

    Attributes:
        data: all examples, NumPy's arrays.
        order: the examples of each batch, shape (batches, batch_size).
    """

    data: Batch
    order: np.ndarray

    def block(self, start: int, count: int) -> Batch:
        """Some batches, one after the other along a first axis.

        Args:
            start: the number of the first.
            count: how many.
        """
        return rows_of(self.data, self.order[start : start + count])


Part: TypeAlias = "Batch | Selection | Rows"
"""What an epoch is given in: one batch, or many of them."""
