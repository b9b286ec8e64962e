"""Starts the processes of a run on this machine, passes on what they write, and ends all when one fails."""

from __future__ import annotations

import os
import selectors
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from supremum.atomic_files import is_file
from supremum.errors import ArgumentError, shown
from supremum.launching import exit_report
from supremum.launching.child_process import Child, end_all
from supremum.launching.exit_report import Ended
from supremum.launching.orphan_guard import Guard
from supremum.launching.port import check_port, free_port
from supremum.launching.process_place import HEARTBEATS, MOST_PROCESSES, ProcessPlace

# Each is an interpreter with JAX in it, which takes hundreds of megabytes, and each device is a pool of threads.
_MOST_HERE = 1024
_MOST_DEVICES = 1024
_GRACE_SECONDS = 5.0
_LOOK_SECONDS = 0.02
_SETTLING_SECONDS = 0.5

Show = Callable[[int, int, str], None]
"""What is called with each line: the id of its process, 1 for standard output or 2 for standard error, and the line."""


def launch(
    script: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    *,
    show: Show,
    processes: int,
    devices_per_process: int | None = None,
    heartbeat: int = HEARTBEATS[0],
    coordinator: str | None = None,
    first_id: int = 0,
    total: int | None = None,
    timeout: float | None = None,
) -> Ended:
    """Run a Python script in several processes at once, until all have ended or one has failed.

    To be called from the main thread of a program. In the script `supremum.training.initialize_processes()` joins them.

    Args:
        script: the Python file; it runs under the interpreter of the caller.
        arguments: of the script.
        show: called with each line they write, in order of arrival.
        processes: how many to start here.
        devices_per_process: CPU devices of each; None leaves it to JAX, which takes one.
        heartbeat: seconds without a heartbeat after which a process is taken for dead, 10 to 30.
        coordinator: `"host:port"` of process 0; None is a free port of this machine, for itself alone.
        first_id: the id of the first process here, where other machines have others.
        total: how many processes there are on all machines; None is as many as here.
        timeout: seconds for the whole run; None for no limit.

    Returns:
        How it ended.

    Raises:
        ArgumentError: for a script that is not a file, numbers that do not fit together, or a port that is in use.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     script = Path(folder, "hello.py")
    ...     _ = script.write_text("print('hello')")
    ...     launch(script, show=print, processes=1)
    0 1 hello
    Ended(exit_code=0, message='')
    """
    total = first_id + processes if total is None and first_id == 0 else total
    _check(script, processes, devices_per_process, coordinator, first_id, total, timeout)
    assert total is not None
    address = coordinator or f"127.0.0.1:{free_port()}"
    places = [
        ProcessPlace(address, total, process_id, heartbeat) for process_id in range(first_id, first_id + processes)
    ]
    if first_id == 0:
        check_port(places[0])
    command = [sys.executable, os.fspath(script), *arguments]
    run = _Run(show, timeout)
    with _signals_noted(run.signals):
        try:
            for place in places:
                run.start(place, command, _environment(os.environ, place, devices_per_process))
            return run.until_the_end()
        finally:
            run.close()


class _Run:
    """The processes and what is known of them."""

    def __init__(self, show: Show, timeout: float | None) -> None:
        self.signals: list[int] = []
        self._children: list[Child] = []
        self._places: list[ProcessPlace] = []
        self._show = show
        self._timeout = timeout
        self._started = time.monotonic()
        self._pipes = selectors.DefaultSelector()
        self._guard = Guard()

    def start(self, place: ProcessPlace, command: Sequence[str], environment: Mapping[str, str]) -> None:
        child = Child(place.process_id, command, environment, self._guard)
        self._children.append(child)
        self._places.append(place)
        for number, stream in enumerate(child.streams):
            self._pipes.register(stream, selectors.EVENT_READ, (child, number))

    def until_the_end(self) -> Ended:
        while True:
            self._pass_on()
            codes = {child.process_id: child.returncode() for child in self._children}
            failed = {process_id: code for process_id, code in codes.items() if code}
            if failed:
                seconds = self._seconds()
                if None in codes.values() and not any(map(exit_report.is_killed, failed.values())):
                    failed = self._killed_meanwhile() or failed
                first = exit_report.cause(failed)
                return self._after_failure(self._children[first - self._children[0].process_id], failed[first], seconds)
            if self.signals:
                self._end_all()
                return exit_report.by_signal(self.signals[0])
            if None not in codes.values():
                self._pass_on_the_rest()
                return exit_report.by_success()
            if self._timeout is not None and self._seconds() > self._timeout:
                return exit_report.by_timeout(self._timeout, self._end_all())

    def _killed_meanwhile(self) -> dict[int, int]:
        """The exit codes of processes that are found killed within a moment after others have failed.

        The system closes the connections of a process that it kills before it says that the process has ended, so that
        others, which fail when they lose the connection, may be seen first.
        """
        until = time.monotonic() + _SETTLING_SECONDS
        while time.monotonic() < until:
            self._pass_on()
            codes = {child.process_id: child.returncode() for child in self._children}
            if killed := {
                process_id: code for process_id, code in codes.items() if code and exit_report.is_killed(code)
            }:
                return killed
        return {}

    def _after_failure(self, child: Child, code: int, seconds: float) -> Ended:
        self._pass_on_the_rest(child)
        last_lines = child.last_errors
        hung = self._end_all()
        return exit_report.by_failure(child.process_id, self._places[0].processes, code, seconds, last_lines, hung)

    def _end_all(self) -> list[int]:
        hung = end_all(self._children, self._give_time)
        self._pass_on_the_rest()
        return hung

    def _give_time(self, asked: list[Child]) -> None:
        end, signals = time.monotonic() + _GRACE_SECONDS, len(self.signals)
        while any(child.returncode() is None for child in asked):
            self._pass_on()
            # A second signal ends the wait.
            if time.monotonic() > end or len(self.signals) > max(signals, 1):
                return

    def _pass_on(self) -> None:
        if not self._pipes.get_map():
            time.sleep(_LOOK_SECONDS)
        for key, _ in self._pipes.select(_LOOK_SECONDS):
            child, number = key.data
            lines, more = child.read(number)
            self._show_all(child, number, lines)
            if not more:
                self._pipes.unregister(key.fileobj)

    def _pass_on_the_rest(self, *children: Child) -> None:
        for child in children or self._children:
            for number in range(2):
                self._show_all(child, number, child.rest(number))

    def _show_all(self, child: Child, number: int, lines: list[str]) -> None:
        for line in lines:
            self._show(child.process_id, number + 1, line)

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def close(self) -> None:
        for child in self._children:
            child.kill()
            child.close()
        self._guard.close()
        self._pipes.close()


def _environment(inherited: Mapping[str, str], place: ProcessPlace, devices_per_process: int | None) -> dict[str, str]:
    # JAX's preemption service would catch SIGTERM, which is how the launcher ends processes.
    own = {"PYTHONUNBUFFERED": "1", "JAX_ENABLE_PREEMPTION_SERVICE": "0"}
    told = place.environment()
    if devices_per_process is not None:
        told["JAX_NUM_CPU_DEVICES"] = str(devices_per_process)
    return own | dict(inherited) | told


def _check(
    script: str | os.PathLike[str],
    processes: int,
    devices_per_process: int | None,
    coordinator: str | None,
    first_id: int,
    total: int | None,
    timeout: float | None,
) -> None:
    if threading.current_thread() is not threading.main_thread():
        raise ArgumentError("processes are launched from the main thread: only it is told of signals")
    if not is_file(Path(script)):
        raise ArgumentError(f"there is no file {shown(os.fspath(script))}: give the path of a Python script")
    bounds = (("processes", processes, _MOST_HERE), ("devices per process", devices_per_process, _MOST_DEVICES))
    for name, number, most in bounds:
        if number is not None and not 1 <= number <= most:
            raise ArgumentError(f"{shown(number)} {name}: expected from 1 to {most:,}")
    for name, number in (("first id", first_id), ("total", total)):
        if number is not None and number > MOST_PROCESSES:
            raise ArgumentError(f"{name} {shown(number)}: expected at most {MOST_PROCESSES:,}")
    if timeout is not None and not timeout > 0:
        raise ArgumentError(f"timeout of {timeout:g} s: expected more than 0")
    if total is None:
        raise ArgumentError(f"first id {first_id}: say with --total how many processes all machines have together")
    if first_id < 0 or first_id + processes > total:
        raise ArgumentError(
            f"processes {first_id} to {first_id + processes - 1} of {total}: ids go from 0 to {total - 1}; "
            "each machine's --first-id is the number of processes on those before it"
        )
    if total > processes and coordinator is None:
        raise ArgumentError(
            f"{processes} of {total} processes are here: the others need --coordinator host:port, "
            "with the address of the machine of process 0"
        )


@contextmanager
def _signals_noted(noted: list[int]) -> Generator[None]:
    """While it is open, who asks the launcher to stop is written down instead of stopping it at once."""

    def note(number: int, _: Any) -> None:
        noted.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
