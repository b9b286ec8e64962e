"""A guard process, which ends the processes of a run if the launcher dies for any reason.

The children of a run's processes do not notice that the launcher was killed. The guard learns the id of every process
of the run from a pipe, and only the launcher holds the other end. When the launcher dies, the pipe closes, and the
guard kills the process groups of all processes that have not ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys


class Guard:
    """The launcher's handle of the guard process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            # Isolated mode without site-packages starts in a few milliseconds.
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # only the launcher receives Ctrl-C in a terminal
        )

    @property
    def pipe(self) -> int:
        """The file descriptor to which a process writes its id as a line when it starts."""
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    def forget(self, pid: int) -> None:
        """Tell the guard that a process and its process group have ended."""
        with contextlib.suppress(BrokenPipeError):  # the guard was killed
            os.write(self.pipe, b"-%d\n" % pid)

    def close(self) -> None:
        """End the guard at the end of the run."""
        self._process.communicate()  # closes the pipe and waits


def kill_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process group, if it still exists.

    Args:
        pid: the process id of its leader.
        number: the signal.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS raises the latter for a group of zombies
        os.killpg(pid, number)


def main() -> None:
    """Read ids of started processes, and negative ids of ended ones, until the launcher dies; then kill the rest."""
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
