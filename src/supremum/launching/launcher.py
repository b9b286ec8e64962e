"""The launcher, which starts the processes of a run, passes on their output, and ends all of them when one fails."""

from __future__ import annotations

import dataclasses
import os
import selectors
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from supremum.atomic_files import is_file
from supremum.errors import ArgumentError, shown
from supremum.launching.child_process import Child
from supremum.launching.orphan_guard import Guard
from supremum.launching.process_place import HEARTBEATS, MOST_PROCESSES, ProcessPlace, check_port, free_port

# Each process with JAX takes hundreds of megabytes, and each device is a pool of threads.
_MOST_HERE = 1024
_MOST_DEVICES = 1024
_GRACE_SECONDS = 5.0
_LOOK_SECONDS = 0.02
_SETTLING_SECONDS = 0.5
_RESTART = "Start the same command again: a script that restores its last checkpoint loses only the steps since."

Show = Callable[[int, int, str], None]
"""Called with each line: the id of its process, 1 for standard output or 2 for standard error, and the line."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run.

    Args:
        exit_code: 0 for success, or the exit code of the process that failed first; 128 plus the number of the signal
            that ended it (the shell's convention); 124 after a timeout (as `timeout` in GNU coreutils).
        message: what happened and what to do, over several lines; empty for success.

    >>> Ended(0), Ended(124, "Timeout: the run did not end within 60 s.").exit_code
    (Ended(exit_code=0, message=''), 124)
    """

    exit_code: int
    message: str = ""


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
    """Run a Python script in several processes until all have ended or one has failed.

    Call this from the main thread. In the script, `supremum.training.initialize_processes()` connects the processes.

    Args:
        script: the Python file; it runs under the interpreter of the caller.
        arguments: the arguments of the script.
        show: called with each line of output, in order of arrival.
        processes: the number of processes to start here.
        devices_per_process: the number of CPU devices of each process; None for JAX's default, one.
        heartbeat: seconds without a heartbeat until a process counts as dead, 10 to 30.
        coordinator: `"host:port"` of process 0; None for a free port of this machine that other machines cannot reach.
        first_id: the id of the first process here, if other machines have earlier ones.
        total: the number of processes on all machines; None if all are here.
        timeout: seconds for the whole run; None for no limit.

    Returns:
        How the run ended.

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
    if threading.current_thread() is not threading.main_thread():
        raise ArgumentError("launch() must be called from the main thread, because only that thread receives signals.")
    if not is_file(Path(script)):
        raise ArgumentError(f"The script must be a Python file, but there is no file {shown(os.fspath(script))}.")
    if timeout is not None and not timeout > 0:
        raise ArgumentError(f"The timeout must be greater than 0 s, got {timeout:g} s.")
    total = _checked_total(processes, devices_per_process, coordinator, first_id, total)
    address, ids = coordinator or f"127.0.0.1:{free_port()}", range(first_id, first_id + processes)
    places = [ProcessPlace(address, total, process_id, heartbeat) for process_id in ids]
    if first_id == 0:
        check_port(places[0])
    command = [sys.executable, os.fspath(script), *arguments]
    run = _Run(show, total, timeout)
    with _signals_noted(run.signals):
        try:
            for place in places:
                run.start(place, command, _environment(os.environ, place, devices_per_process))
            return run.until_the_end()
        finally:
            run.close()


class _Run:
    """The processes of a run and their state."""

    def __init__(self, show: Show, total: int, timeout: float | None) -> None:
        self.signals: list[int] = []
        self._children: list[Child] = []
        self._total = total
        self._show = show
        self._timeout = timeout
        self._started = time.monotonic()
        self._pipes = selectors.DefaultSelector()
        self._guard = Guard()

    def start(self, place: ProcessPlace, command: Sequence[str], environment: Mapping[str, str]) -> None:
        child = Child(place.process_id, command, environment, self._guard)
        self._children.append(child)
        for number, stream in enumerate(child.streams):
            self._pipes.register(stream, selectors.EVENT_READ, (child, number))

    def until_the_end(self) -> Ended:
        while True:
            self._pass_on()
            codes = {child.process_id: child.returncode() for child in self._children}
            failed = {process_id: code for process_id, code in codes.items() if code}
            seconds = time.monotonic() - self._started
            if failed:
                if None in codes.values() and not any(map(_is_killed, failed.values())):
                    failed = self._killed_meanwhile() or failed
                first = cause(failed)
                child = self._children[first - self._children[0].process_id]
                self._pass_on_the_rest(child)
                return _by_failure(first, self._total, failed[first], seconds, [*child.last_errors], self._end_all())
            if self.signals:
                self._end_all()
                return Ended(128 + self.signals[0], f"{_signal_name(self.signals[0])}: all processes were ended.")
            if None not in codes.values():
                self._pass_on_the_rest()
                return Ended(0)
            if self._timeout is not None and seconds > self._timeout:
                return _by_timeout(self._timeout, self._end_all())

    def _killed_meanwhile(self) -> dict[int, int]:
        """The exit codes of processes that turn out to be killed shortly after others have failed.

        The system closes the connections of a killed process before it reports the end of the process. The launcher may
        therefore first see the failure of processes that lost the connection.
        """
        until = time.monotonic() + _SETTLING_SECONDS
        while time.monotonic() < until:
            self._pass_on()
            codes = {child.process_id: child.returncode() or 0 for child in self._children}
            if killed := {process_id: code for process_id, code in codes.items() if _is_killed(code)}:
                return killed
        return {}

    def _end_all(self) -> list[int]:
        """Ask all processes to end, wait, and kill those that have not ended; return the ids of those."""
        end, signals = time.monotonic() + _GRACE_SECONDS, len(self.signals)
        try:
            for child in self._running():
                child.terminate()
            # A second signal to the launcher ends the wait.
            while self._running() and time.monotonic() <= end and len(self.signals) <= max(signals, 1):
                self._pass_on()
        finally:
            hung = self._running()
            for child in hung:
                child.kill()
        self._pass_on_the_rest()
        return [child.process_id for child in hung]

    def _running(self) -> list[Child]:
        return [child for child in self._children if child.returncode() is None]

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

    def close(self) -> None:
        for child in self._children:
            child.kill()
            child.close()
        self._guard.close()
        self._pipes.close()


def _environment(inherited: Mapping[str, str], place: ProcessPlace, devices_per_process: int | None) -> dict[str, str]:
    # JAX's preemption service would catch SIGTERM, which the launcher uses to end processes.
    defaults = {"PYTHONUNBUFFERED": "1", "JAX_ENABLE_PREEMPTION_SERVICE": "0"}
    devices = {} if devices_per_process is None else {"JAX_NUM_CPU_DEVICES": str(devices_per_process)}
    return defaults | dict(inherited) | place.environment() | devices


def _checked_total(
    processes: int, devices_per_process: int | None, coordinator: str | None, first_id: int, total: int | None
) -> int:
    """The number of processes on all machines, if the numbers fit together."""
    bounds = (("processes", processes, _MOST_HERE), ("devices per process", devices_per_process, _MOST_DEVICES))
    for name, number, most in bounds:
        if number is not None and not 1 <= number <= most:
            raise ArgumentError(f"The number of {name} must be from 1 to {most:,}, got {shown(number)}.")
    for name, number in (("first id", first_id), ("total", total)):
        if number is not None and number > MOST_PROCESSES:
            raise ArgumentError(f"The {name} must be at most {MOST_PROCESSES:,}, got {shown(number)}.")
    total = processes if total is None and first_id == 0 else total
    if total is None:
        raise ArgumentError(f"A first id of {first_id} needs --total, the number of processes on all machines.")
    if first_id < 0 or first_id + processes > total:
        raise ArgumentError(
            f"The ids of {total} processes must be from 0 to {total - 1}, got {first_id} to "
            f"{first_id + processes - 1}; set --first-id to the number of processes on earlier machines."
        )
    if total > processes and coordinator is None:
        raise ArgumentError(
            f"Only {processes} of {total} processes are on this machine, so all machines need --coordinator host:port "
            "with the address of process 0."
        )
    return total


@contextmanager
def _signals_noted(noted: list[int]) -> Generator[None]:
    """Record the signals that ask the launcher to stop, instead of stopping at once."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda received, _: noted.append(received)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def cause(failed: Mapping[int, int]) -> int:
    """The most likely cause among several processes that failed at about the same time.

    JAX aborts the others when one fails, so an aborted process is an unlikely cause. A killed process is a likely one,
    because the others raise when they lose the connection to it.

    Args:
        failed: the exit codes by process id, negative for a signal.

    >>> cause({0: -6, 1: 1, 2: -9})
    2
    """
    return min(failed, key=lambda process_id: (failed[process_id] == -signal.SIGABRT, failed[process_id] > 0))


def _is_killed(code: int) -> bool:
    """Whether a process was ended by a signal other than SIGABRT, which a process sends to itself.

    Args:
        code: its exit code, negative for a signal.
    """
    return code < 0 and code != -signal.SIGABRT


def _by_failure(
    process_id: int, total: int, returncode: int, seconds: float, last_lines: Sequence[str], hung: list[int]
) -> Ended:
    """One process failed, and the others were ended.

    Args:
        process_id: the process that failed first.
        total: the number of processes in the run.
        returncode: as in `subprocess`, negative for a signal.
        seconds: the time since the start of the run.
        last_lines: the last lines of its standard error.
        hung: the processes that had to be killed because they did not react to SIGTERM.

    >>> print(_by_failure(2, 4, -9, 12.5, ["step 11"], []).message)
    Process 2 of 4 was ended by SIGKILL 12.5 s after the start; the others were ended.
    Its last lines on standard error:
      step 11
    Start the same command again: a script that restores its last checkpoint loses only the steps since.
    """
    is_signal = returncode < 0
    how = f"was ended by {_signal_name(-returncode)}" if is_signal else f"ended with exit code {returncode}"
    lines = [f"Process {process_id} of {total} {how} {seconds:.1f} s after the start; the others were ended."]
    if last_lines:
        lines += ["Its last lines on standard error:", *(f"  {line}" for line in last_lines)]
    return Ended(128 - returncode if is_signal else returncode, "\n".join([*lines, *_about_hung(hung), _RESTART]))


def _by_timeout(timeout: float, hung: list[int]) -> Ended:
    """The run exceeded its timeout.

    Args:
        timeout: the timeout in seconds.
        hung: the processes that had to be killed.
    """
    lines = [f"The run exceeded its --timeout of {timeout:g} s; all processes were ended.", *_about_hung(hung)]
    return Ended(124, "\n".join([*lines, _RESTART]))


def _about_hung(hung: list[int]) -> list[str]:
    if not hung:
        return []
    which = f"Process {hung[0]}" if len(hung) == 1 else f"Processes {', '.join(map(str, hung))}"
    return [f"{which} did not react to SIGTERM and had to be killed; look there first for the cause of the hang."]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"
