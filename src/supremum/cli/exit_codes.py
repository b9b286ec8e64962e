"""How the command ends: its exit code, also after Ctrl-C, and when nobody takes what it prints."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from supremum.errors import shortened

FAILURE = 1
"""The exit code where a command could not do its work."""
USAGE_ERROR = 2
"""The exit code for what the user got wrong."""
INTERRUPTED = 130
"""The exit code after Ctrl-C."""
_MOMENT = 0.01


class Interrupts:
    """Takes note of Ctrl-C, because what is interrupted may raise another error, or lose the KeyboardInterrupt."""

    def __init__(self) -> None:
        self.seen = False

    def listen(self) -> None:
        """Take note from now on; a program that ignores Ctrl-C goes on ignoring it."""
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._note)
            sys.unraisablehook = self._send_again

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        signal.default_int_handler(number, frame)

    def _send_again(self, lost: sys.UnraisableHookArgs) -> None:
        # Where Python calls a function that cannot fail, as JAX has one that runs with the garbage collector.
        if lost.exc_type is KeyboardInterrupt:
            threading.Timer(_MOMENT, signal.raise_signal, (signal.SIGINT,)).start()
        else:
            sys.__unraisablehook__(lost)


@contextmanager
def loading() -> Generator[None]:
    """While it is open, Ctrl-C ends the process: half a module that wraps C++ may crash, or wait for ever."""
    before = signal.getsignal(signal.SIGINT)
    is_heard = before != signal.SIG_IGN and threading.current_thread() is threading.main_thread()
    if is_heard:
        signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        if is_heard:
            signal.signal(signal.SIGINT, before)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"supremum: interrupted\n")
    os._exit(INTERRUPTED)


def run(app: Callable[..., Any]) -> int:
    """Run the command line.

    Args:
        app: typer's application.

    Returns:
        The exit code.
    """
    interrupts = Interrupts()
    interrupts.listen()
    code: Any = 0
    try:
        app(prog_name="supremum", obj=interrupts)
    except SystemExit as ended:
        code = ended.code
    except KeyboardInterrupt:
        code = INTERRUPTED
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would try again when it ends, and write of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or told(error)
    return code if isinstance(code, int) else FAILURE


def told(error: OSError) -> int:
    """Say on standard error that standard output takes nothing.

    Args:
        error: what the system said.

    Returns:
        The exit code.
    """
    if not isinstance(error, BrokenPipeError):  # whoever closed the pipe knows
        print(f"supremum: standard output cannot be written: {shortened(str(error))}", file=sys.stderr)
    return FAILURE
