"""One process that was started: what it writes, and how it is ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO

from supremum.launching import parent_watch
from supremum.launching.orphan_guard import Guard, kill_group

_LAST_LINES = 8


class _Lines:
    """Cuts what arrives in pieces into lines."""

    def __init__(self) -> None:
        self._begun = b""

    def add(self, piece: bytes) -> list[str]:
        *lines, self._begun = (self._begun + piece).split(b"\n")
        return [line.decode(errors="replace") for line in lines]

    def rest(self) -> list[str]:
        rest, self._begun = self._begun, b""
        return [rest.decode(errors="replace")] if rest else []


class Child:
    """A process of the run, in a process group of its own.

    Args:
        process_id: its id in the run.
        command: program and arguments.
        environment: all its variables.
        guard: who ends it, and what it has started, when the launcher is gone.
    """

    def __init__(self, process_id: int, command: Sequence[str], environment: Mapping[str, str], guard: Guard) -> None:
        self.process_id = process_id
        self._guard = guard
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", parent_watch.__file__, str(os.getpid()), str(guard.pipe), *command],
            env=environment,
            pass_fds=(guard.pipe,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.streams: tuple[IO[bytes], IO[bytes]] = (self._process.stdout, self._process.stderr)
        self._lines = (_Lines(), _Lines())
        self._last_errors: deque[str] = deque(maxlen=_LAST_LINES)
        for stream in self.streams:
            os.set_blocking(stream.fileno(), False)

    def read(self, stream: int) -> tuple[list[str], bool]:
        """The lines that a stream has become whole since it was last read.

        Args:
            stream: 0 for standard output, 1 for standard error.

        Returns:
            The lines, and whether more may come.
        """
        try:
            piece = os.read(self.streams[stream].fileno(), 2**16)
        except BlockingIOError:
            return [], True
        lines = self._lines[stream].add(piece) if piece else self._lines[stream].rest()
        return self._noted(stream, lines), bool(piece)

    def rest(self, stream: int) -> list[str]:
        """All that is left to read of a process that has ended; what it started may still hold the pipe open.

        Args:
            stream: 0 for standard output, 1 for standard error.
        """
        lines: list[str] = []
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self.streams[stream].fileno(), 2**16):
                lines += self._lines[stream].add(piece)
        return self._noted(stream, [*lines, *self._lines[stream].rest()])

    def _noted(self, stream: int, lines: list[str]) -> list[str]:
        if stream == 1:
            self._last_errors.extend(line for line in lines if line.strip() and not _is_native_frame(line))
        return lines

    @property
    def last_errors(self) -> list[str]:
        """The last lines of its standard error, without the frames of native code."""
        return list(self._last_errors)

    def returncode(self) -> int | None:
        """How it ended, negative for a signal; None while it runs. What it started ends with it."""
        running = self._process.returncode is None
        code = self._process.poll()
        if running and code is not None:
            kill_group(self._process.pid, signal.SIGKILL)
            self._guard.forget(self._process.pid)
        return code

    def terminate(self) -> None:
        """Ask it to end."""
        if self.returncode() is None:
            kill_group(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it, also where it is stopped."""
        if self.returncode() is None:
            kill_group(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._guard.forget(self._process.pid)

    def close(self) -> None:
        """Give its pipes back."""
        for stream in self.streams:
            stream.close()


def _is_native_frame(line: str) -> bool:
    return line.startswith(("    @ ", "*** Check failure stack trace"))


def end_all(children: Iterable[Child], pause: Callable[[list[Child]], None]) -> list[int]:
    """Ask all to end, wait, and kill who has not.

    Args:
        children: the processes; those that have ended are left alone.
        pause: called with those that were asked; returns when all have ended or have had time enough.

    Returns:
        The ids of those that had to be killed.
    """
    asked = [child for child in children if child.returncode() is None]
    try:
        for child in asked:
            child.terminate()
        pause(asked)
    finally:
        left = [child for child in asked if child.returncode() is None]
        for child in left:
            child.kill()
    return [child.process_id for child in left]
