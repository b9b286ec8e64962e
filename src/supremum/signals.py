"""Signals, kept off for a moment."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_interrupts() -> Generator[None]:
    """While it is open, Ctrl-C waits; processes that are started in it never hear of it.

    >>> try:
    ...     with without_interrupts():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("going on")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    going on
    interrupted
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
