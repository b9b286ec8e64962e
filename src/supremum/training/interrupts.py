"""Delay Ctrl-C during training until the model's values are complete."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any


def _always_wait() -> bool:
    return True


class Interrupts:
    """Delay Ctrl-C in some blocks of a program until they end.

    A step reuses the memory of its input values. An interrupt between the step and storing its results would lose both.
    `watched` replaces the handler of `SIGINT` and restores it at the end of its block. Outside of the `held_back`
    blocks, the new handler calls the previous one at once. `watched` does nothing in threads other than the main one,
    which Python never interrupts, and if Ctrl-C is ignored or ends the process.

    >>> interrupts = Interrupts()
    >>> with interrupts.watched():
    ...     try:
    ...         with interrupts.held_back():
    ...             signal.raise_signal(signal.SIGINT)
    ...             print("finished first")
    ...     except KeyboardInterrupt:
    ...         print("then interrupted")
    finished first
    then interrupted
    """

    def __init__(self) -> None:
        self._before: Callable[[int, FrameType | None], Any] = signal.default_int_handler
        self._blocks: list[Callable[[], bool]] = []
        self._is_pending = False

    @contextmanager
    def watched(self) -> Generator[None]:
        """Install the handler for a block; a nested block changes nothing."""
        before, ours = signal.getsignal(signal.SIGINT), self._handle
        if before == ours or threading.current_thread() is not threading.main_thread() or not callable(before):
            yield
            return
        self._before, self._is_pending = before, False
        self._blocks.clear()
        try:
            signal.signal(signal.SIGINT, ours)
            yield
        finally:
            if signal.getsignal(signal.SIGINT) == ours:  # otherwise other code has replaced it in the meantime
                signal.signal(signal.SIGINT, before)

    def held_back(self, while_: Callable[[], bool] = _always_wait) -> AbstractContextManager[None]:
        """Return a block in which Ctrl-C waits; the block can be entered again.

        Args:
            while_: called when an interrupt arrives; returns whether it must wait. Otherwise it acts at once.
        """
        return _DelayedBlock(self._blocks, while_, self._act_if_pending)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if any(waits() for waits in self._blocks):
            self._is_pending = True
        else:
            self._before(number, frame)

    def _act_if_pending(self) -> None:
        """Act on a pending interrupt unless it must wait for an outer block."""
        if self._is_pending and not any(waits() for waits in self._blocks):
            self._is_pending = False
            self._handle(signal.SIGINT, None)


class _DelayedBlock(AbstractContextManager[None]):
    """A block that delays Ctrl-C; a class, because an interrupt could hit a generator before its cleanup starts."""

    def __init__(self, blocks: list[Callable[[], bool]], waits: Callable[[], bool], at_end: Callable[[], None]) -> None:
        self._blocks, self._waits, self._at_end = blocks, waits, at_end

    def __enter__(self) -> None:
        self._blocks.append(self._waits)

    def __exit__(self, *_: object) -> None:
        self._blocks.pop()
        self._at_end()
