"""A batch, many batches of the same arrays, and what gives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

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

    def rows(leaf: Any) -> Any:
        return leaf[which]

    return jax.tree.map(rows, batch)


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


class Data(Protocol):
    """Batches, epoch after epoch."""

    @property
    def steps(self) -> int | None:
        """How many batches an epoch has; None where that is not known before its end."""
        ...

    @property
    def first(self) -> Batch:
        """A batch to make a model for; only shapes and dtypes count."""
        ...

    def epoch(self, shuffler: np.random.Generator | None, *, on_host: bool = False) -> Iterator[Part]:
        """The batches of an epoch; a `Selection`, or `Rows`, stands for all that it has.

        Args:
            shuffler: what to shuffle by; None for the order of the data.
            on_host: whether arrays stay there, to be cut for several devices.
        """
        ...
