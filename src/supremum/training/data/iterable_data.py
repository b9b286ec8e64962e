"""Batches that an iterable gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any, Final

import numpy as np

from supremum.errors import ArgumentError, OperandError, SupremumError
from supremum.training.data.batch import Batch, Part
from supremum.training.data.conversion import as_batch
from supremum.training.warnings import TrainingWarning
from supremum.user_frame import warn_user

_NO_BATCH: Final = object()


class IterableData:
    """Batches that something else makes: a list, a generator, a DataLoader of PyTorch, Grain or tf.data.

    A batch is x alone, or a tuple or list of x, y and sample weights, of which the last ones may be left out; its
    leaves are anything that NumPy or DLPack reads. What can be iterated again is, in every epoch; what cannot, such as
    a generator, goes on where it was. The iterable may use the memory of a batch again for the next one: batches are
    copied, but for arrays of JAX, which cannot change.

    Args:
        batches: the iterable.
        steps: how many batches make an epoch; None for all there are. If there are fewer, a `TrainingWarning` says so:
            an epoch then has those that there are, or, of what can be iterated again, some of them twice.

    Raises:
        OperandError: for what cannot be iterated; a `TypeError`.
    """

    def __init__(self, batches: Iterable[Any], *, steps: int | None = None) -> None:
        if not isinstance(batches, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(f"data must be arrays or an iterable of batches, got {type(batches).__name__}")
        self._batches = batches
        self._steps = steps
        self._running: Iterator[Any] | None = None
        self._in_pass = 0
        self._peeked: Batch | None = None
        self._has_warned = False

    @property
    def steps(self) -> int | None:
        """How many batches an epoch has; None for as many as come."""
        return len(self._batches) if self._steps is None and isinstance(self._batches, Sized) else self._steps

    @property
    def first(self) -> Batch:
        """The next batch, which stays the next one."""
        if self._peeked is None:
            self._peeked = self._next()
        if self._peeked is None:
            raise ArgumentError("the data has no batches")
        return self._peeked

    def epoch(self, shuffler: np.random.Generator | None, *, on_host: bool = False) -> Iterator[Part]:  # noqa: ARG002 (the data shuffles itself)
        """The next batches."""
        if isinstance(self._batches, Sized):
            self._warn_of_repetition(len(self._batches))
        given, last_pass = 0, None
        while given != self._steps:
            batch, self._peeked = self._next() if self._peeked is None else self._peeked, None
            if batch is not None:
                if last_pass is not None:
                    self._warn_of_repetition(last_pass)
                given += 1
                yield batch
                continue
            last_pass, self._in_pass, self._running = self._in_pass, 0, None
            if self._steps is None:
                return
            if not last_pass:
                if given:
                    self._warn(
                        f"{self._steps} steps were requested, but the data ran out after {given}; provide a batch for "
                        "every step of every epoch, or request fewer steps"
                    )
                return

    def _next(self) -> Batch | None:
        if self._running is None:
            self._running = iter(self._batches)
        found = next(self._running, _NO_BATCH)
        if found is _NO_BATCH:
            return None
        self._in_pass += 1
        try:
            return as_batch(found, copies=True)
        except SupremumError as error:
            error.add_note(f"in batch {self._in_pass - 1} of what the iterable gives (counted from 0)")
            raise

    def _warn_of_repetition(self, batches: int) -> None:
        if self._steps is not None and batches < self._steps:
            number = "1 batch" if batches == 1 else f"{batches} batches"
            self._warn(
                f"{self._steps} steps were requested, but the data has only {number}, so some are used more than "
                "once; request fewer steps"
            )

    def _warn(self, message: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            warn_user(message, TrainingWarning)
