"""Ctrl-C while a model trains: it waits until the model's values are whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any


def _always() -> bool:
    return True


class Interrupts:
    """Holds Ctrl-C back in some stretches of a program, and lets it act at the end of each.

    A step gives its memory to the next one. Were the program interrupted after that, and before the new values are
    kept, there would be none left. `watched` puts a handler of its own in the place of that of `SIGINT`, and puts the
    other one back at its end; outside of the stretches it calls that at once. In other threads than the main one,
    which Python never interrupts, and where Ctrl-C is ignored or ends the process, nothing is done.

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
        self._stretches: list[Callable[[], bool]] = []
        self._came = False

    @contextmanager
    def watched(self) -> Generator[None]:
        """Have the handler in place, for a block; a block within another one changes nothing."""
        before, ours = signal.getsignal(signal.SIGINT), self._handle
        if before == ours or threading.current_thread() is not threading.main_thread() or not callable(before):
            yield
            return
        self._before, self._came = before, False
        self._stretches.clear()
        try:
            signal.signal(signal.SIGINT, ours)
            yield
        finally:
            if signal.getsignal(signal.SIGINT) == ours:  # else other code has replaced it meanwhile
                signal.signal(signal.SIGINT, before)

    def held_back(self, while_: Callable[[], bool] = _always) -> _Stretch:
        """A block that Ctrl-C does not tear apart.

        Args:
            while_: whether an interrupt has to wait, asked when one comes; otherwise it acts at once.
        """
        return _Stretch(self, while_)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if any(waits() for waits in self._stretches):
            self._came = True
        else:
            self._before(number, frame)

    def enter(self, waits: Callable[[], bool]) -> None:
        """Begin a stretch."""
        self._stretches.append(waits)

    def leave(self) -> None:
        """End the innermost stretch; if an interrupt came and need not wait for an outer one, it acts."""
        self._stretches.pop()
        if self._came and not any(waits() for waits in self._stretches):
            self._came = False
            self._handle(signal.SIGINT, None)


class _Stretch:
    """A class, since a generator would be interrupted itself between its last line and that of the block."""

    def __init__(self, interrupts: Interrupts, waits: Callable[[], bool]) -> None:
        self._interrupts, self._waits = interrupts, waits

    def __enter__(self) -> None:
        self._interrupts.enter(self._waits)

    def __exit__(self, *_: object) -> None:
        self._interrupts.leave()
