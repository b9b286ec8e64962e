"""Ends what a run has started when the launcher is gone, however that came about.

Nobody tells the processes of processes that the launcher was killed. So a small program beside it is told of every
process of the run, and reads from a pipe whose other end only the launcher holds: when that is closed, it kills the
process groups of those that have not ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys


class Guard:
    """The small program, as the launcher sees it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            # Isolated and without site-packages it starts in a few milliseconds.
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal is for the launcher
        )

    @property
    def pipe(self) -> int:
        """The file descriptor into which a process writes its id when it starts, as a line."""
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    def forget(self, pid: int) -> None:
        """A process has ended, and its process group with it."""
        with contextlib.suppress(BrokenPipeError):  # the guard has been ended
            os.write(self.pipe, b"-%d\n" % pid)

    def close(self) -> None:
        """The run is over."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def kill_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process group, if there is any left of it.

    Args:
        pid: the process id of its leader.
        number: the signal.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS says the latter of a group of dead ones
        os.killpg(pid, number)


def main() -> None:
    """Read ids, those that have ended with a minus before them, until the launcher is gone."""
    running: set[int] = set()
    for line in sys.stdin:
        number = int(line)
        if number > 0:
            running.add(number)
        else:
            running.discard(-number)
    for each in running:
        kill_group(each, signal.SIGKILL)


if __name__ == "__main__":
    main()
