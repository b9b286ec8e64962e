"""Batches from an iterable."""

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
    """Batches from any iterable: a list, a generator, a PyTorch DataLoader, Grain or tf.data.

    A batch is x alone, or a tuple or list (x,), (x, y) or (x, y, sample_weight); its leaves are anything that NumPy or
    DLPack reads. Every epoch iterates over the iterable again; an iterator, such as a generator, continues where it
    stopped. The iterable may reuse the memory of a batch for the next one, because batches are copied, except for JAX
    arrays, which are immutable.

    Args:
        batches: the iterable.
        steps: the number of batches in an epoch; None for all of them. If the iterable has fewer, there is a
            `TrainingWarning`: an epoch then repeats batches, or is shorter if the iterable cannot be iterated again.

    Raises:
        OperandError: if `batches` is not iterable; a `TypeError`.
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
        """The number of batches in an epoch; None if it is not known."""
        return len(self._batches) if self._steps is None and isinstance(self._batches, Sized) else self._steps

    @property
    def first(self) -> Batch:
        """The next batch, without consuming it."""
        if self._peeked is None:
            self._peeked = self._next()
        if self._peeked is None:
            raise ArgumentError("the data has no batches")
        return self._peeked

    def epoch(self, shuffler: np.random.Generator | None, *, on_host: bool = False) -> Iterator[Part]:  # noqa: ARG002 (the data shuffles itself)
        """Yield the batches of an epoch."""
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
