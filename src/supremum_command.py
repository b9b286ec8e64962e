"""The `supremum` command; it handles Ctrl-C while its modules load."""

from __future__ import annotations

import os
import signal
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Load the command line and run it; Ctrl-C while it loads ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from supremum.cli import main as run

    run()


def _end(_number: int, _frame: FrameType | None) -> None:
    # Nothing has been done yet, and a module that is loading may turn a KeyboardInterrupt into a different error.
    os._exit(_INTERRUPTED)
