"""One process of a run: its output, and how to end it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO

from supremum.launching import parent_watch
from supremum.launching.orphan_guard import Guard, kill_group

_LAST_LINES = 8


class Child:
    """A process of the run, in a separate process group.

    Args:
        process_id: its id in the run.
        command: the program and its arguments.
        environment: all environment variables.
        guard: the guard, which ends the process and its children if the launcher dies.
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
        self._unfinished = [b"", b""]
        # The last lines of standard error, without stack frames of native code.
        self.last_errors: deque[str] = deque(maxlen=_LAST_LINES)
        for stream in self.streams:
            os.set_blocking(stream.fileno(), False)

    def read(self, stream: int) -> tuple[list[str], bool]:
        """Read the lines that a stream has completed since the last call.

        Args:
            stream: 0 for standard output, 1 for standard error.

        Returns:
            The lines, and whether more may follow.
        """
        try:
            piece = os.read(self.streams[stream].fileno(), 2**16)
        except BlockingIOError:
            return [], True
        return self._lines(stream, piece, is_last=not piece), bool(piece)

    def rest(self, stream: int) -> list[str]:
        """Read the rest of a stream after the process has ended; its children may still hold the pipe open.

        Args:
            stream: 0 for standard output, 1 for standard error.
        """
        pieces: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self.streams[stream].fileno(), 2**16):
                pieces.append(piece)
        return self._lines(stream, b"".join(pieces), is_last=True)

    def _lines(self, stream: int, piece: bytes, *, is_last: bool) -> list[str]:
        *complete, rest = (self._unfinished[stream] + piece).split(b"\n")
        if is_last and rest:
            complete, rest = [*complete, rest], b""
        self._unfinished[stream] = rest
        lines = [line.decode(errors="replace") for line in complete]
        if stream == 1:
            native = ("    @ ", "*** Check failure stack trace")
            self.last_errors.extend(line for line in lines if line.strip() and not line.startswith(native))
        return lines

    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs. Its children end with it."""
        running = self._process.returncode is None
        code = self._process.poll()
        if running and code is not None:
            kill_group(self._process.pid, signal.SIGKILL)
            self._guard.forget(self._process.pid)
        return code

    def terminate(self) -> None:
        """Ask the process to end."""
        if self.returncode() is None:
            kill_group(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process, even if it is stopped."""
        if self.returncode() is None:
            kill_group(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._guard.forget(self._process.pid)

    def close(self) -> None:
        """Close the pipes."""
        for stream in self.streams:
            stream.close()
