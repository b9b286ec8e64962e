"""Batches cut from arrays, which stay on the device if they fit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.errors import ArgumentError
from supremum.mixed_precision import keep_64_bits
from supremum.nn.functional import positive_int
from supremum.training.data.batch import Batch, Part, Rows, Selection, rows_of
from supremum.training.data.conversion import as_arrays, common_length

ON_DEVICE_BYTES = 2**31
"""The largest total size of arrays that are put on the device once; larger data goes there batch by batch."""


class ArrayData:
    """Arrays with one example per index of their first axis, cut into batches; the last one may be smaller.

    Args:
        x: inputs, a tree of arrays.
        y: labels, a tree of arrays, or None.
        sample_weight: shape (examples,), or None.
        batch_size: the number of examples in a batch.
        steps: the number of batches in an epoch; None for all of them.

    Raises:
        ArgumentError: if there are no examples, if the arrays have different lengths, if the batch size is below 1, or
            if there are fewer batches than steps; a `ValueError`.
        OperandError: if a leaf is not an array; a `TypeError`.
    """

    def __init__(
        self, x: Any, y: Any = None, sample_weight: Any = None, *, batch_size: int, steps: int | None = None
    ) -> None:
        self._batch = Batch(
            *(as_arrays(name, part) for name, part in zip(Batch._fields, (x, y, sample_weight), strict=True))
        )
        self.examples = common_length(self._batch)
        self._batch_size = min(positive_int("batch_size", batch_size), self.examples)
        self._on_device: Batch | None = None
        most = math.ceil(self.examples / self._batch_size)
        if steps is not None and positive_int("the number of steps", steps) > most:
            raise ArgumentError(
                f"{steps} steps were requested, but the data has only {most} batches; use at most {most}"
            )
        self.steps = most if steps is None else steps

    def split(self, share: float) -> tuple[Batch, Batch]:
        """Split the examples in two: the first ones, and the last ones.

        Args:
            share: the fraction of the examples that goes to the second part, between 0 and 1.

        Raises:
            ArgumentError: if one part would be empty; a `ValueError`.
        """
        kept = self.examples - int(self.examples * share)
        if not 0 < kept < self.examples:
            raise ArgumentError(f"a split of {share} leaves one part of the {self.examples} examples empty")
        return rows_of(self._batch, slice(kept)), rows_of(self._batch, slice(kept, None))

    @property
    def first(self) -> Batch:
        """The shapes and dtypes of a batch."""

        def spec(leaf: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((self._batch_size, *leaf.shape[1:]), leaf.dtype)

        return jax.tree.map(spec, self._batch)

    def epoch(self, shuffler: np.random.Generator | None, *, on_host: bool = False) -> Iterator[Part]:
        """Yield the batches of an epoch.

        Args:
            shuffler: shuffles the examples; None keeps their order.
            on_host: whether the arrays stay on the host, to be split over several devices.
        """
        size = self._batch_size
        # Shuffle on the host: XLA permutes by sorting, which takes 4.7 ms for 12,800 examples (six perceptron steps).
        order = np.arange(self.examples) if shuffler is None else shuffler.permutation(self.examples)
        order = order.astype(np.int32 if self.examples < 2**31 else np.int64)[: self.steps * size]
        count = len(order) // size
        whole = [order[: count * size].reshape(count, size)]
        if count * size < len(order):
            whole.append(order[count * size :][None])
        if on_host or host_is_the_device():
            data: Any = jax.tree.map(np.asarray, self._batch)
            yield from (Rows(data, each) for each in whole)
        elif sum(leaf.nbytes for leaf in jax.tree.leaves(self._batch)) <= ON_DEVICE_BYTES:
            if self._on_device is None:
                self._on_device = jax.device_put(keep_64_bits(self._batch))
            data = self._on_device
            yield from (Selection(data, jnp.asarray(each), jnp.zeros((), jnp.int32)) for each in whole)
        else:
            yield from (rows_of(self._batch, rows) for each in whole for rows in each)


def host_is_the_device() -> bool:
    """Whether NumPy should select the rows: on a CPU, XLA copies them one by one, 0.7 us each."""
    return jax.default_backend() == "cpu"
