"""The exit codes of the command, also after Ctrl-C and when standard output cannot be written."""

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
"""The exit code if a command could not do its work."""
USAGE_ERROR = 2
"""The exit code for a usage error."""
INTERRUPTED = 130
"""The exit code after Ctrl-C."""
CLOSED_PIPE = 141
"""The exit code if the reader of standard output closed it, as of programs that SIGPIPE ends."""
EXIT_CODES: dict[int, str] = {
    0: "success; a refusal that is explained is one",
    FAILURE: "a file cannot be written, a program raises, a cast is forbidden, a result is not finite",
    USAGE_ERROR: "an unknown name, a wrong argument, a missing package",
    INTERRUPTED: "Ctrl-C",
    CLOSED_PIPE: "standard output was closed, as by head",
}
"""The meaning of each exit code."""
_MOMENT = 0.01


class Interrupts:
    """Records Ctrl-C, because the interrupted code may raise a different error or lose the KeyboardInterrupt."""

    def __init__(self) -> None:
        self.seen = False

    def listen(self) -> None:
        """Start recording, unless the process ignores Ctrl-C."""
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._note)
            sys.unraisablehook = self._send_again

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.seen: bool = True
        signal.default_int_handler(number, frame)

    def _send_again(self, lost: sys.UnraisableHookArgs) -> None:
        # Python ignores errors in some callbacks, such as one of JAX's that runs with the garbage collector.
        if lost.exc_type is KeyboardInterrupt:
            threading.Timer(_MOMENT, signal.raise_signal, (signal.SIGINT,)).start()
        else:
            sys.__unraisablehook__(lost)


@contextmanager
def loading() -> Generator[None]:
    """Let Ctrl-C end the process during imports, because a half-imported C++ module may crash or hang."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"supremum: interrupted\n")
    os._exit(INTERRUPTED)


def run(app: Callable[..., Any]) -> int:
    """Run the command line.

    Args:
        app: the typer application.

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
        # At exit, Python would try again and print the error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return code or CLOSED_PIPE
        if not code:
            print(f"supremum: standard output cannot be written: {shortened(str(error))}", file=sys.stderr)
        return code or FAILURE
    return code if isinstance(code, int) else FAILURE
