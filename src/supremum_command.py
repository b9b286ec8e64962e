"""The `supremum` command from its first moment on, while its modules load."""

from __future__ import annotations

import os
import signal
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Load the command line and run it; Ctrl-C ends the loading at once, without the traceback of half a module."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from supremum.cli import main as run

    run()


def _end(_number: int, _frame: FrameType | None) -> None:
    # Nothing has been done yet, and what modules make of a KeyboardInterrupt may be another error.
    os._exit(_INTERRUPTED)
