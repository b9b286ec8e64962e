"""Blocking of signals."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_interrupts() -> Generator[None]:
    """Delay Ctrl-C until the block ends; processes started in the block ignore it.

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
