"""How a run ended: a message and an exit code."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Mapping

_RESTART = "Start the same command again: a script that restores its last checkpoint loses only the steps since."


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run.

    Args:
        exit_code: 0 for success, or the exit code of the process that failed first; 128 plus the number of the signal
            that ended it (the shell's convention); 124 after a timeout (as `timeout` in GNU coreutils).
        message: what happened and what to do, over several lines; empty for success.
    """

    exit_code: int
    message: str = ""


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


def is_killed(code: int) -> bool:
    """Whether a process was ended by a signal other than SIGABRT, which a process sends to itself.

    Args:
        code: its exit code, negative for a signal.
    """
    return code < 0 and code != -signal.SIGABRT


def by_failure(
    process_id: int, total: int, returncode: int, seconds: float, last_lines: list[str], hung: list[int]
) -> Ended:
    """One process failed, and the others were ended.

    Args:
        process_id: the process that failed first.
        total: the number of processes in the run.
        returncode: as in `subprocess`, negative for a signal.
        seconds: the time since the start of the run.
        last_lines: the last lines of its standard error.
        hung: the processes that had to be killed because they did not react to SIGTERM.

    >>> print(by_failure(2, 4, -9, 12.5, ["step 11"], []).message)
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


def by_timeout(timeout: float, hung: list[int]) -> Ended:
    """The run exceeded its timeout.

    Args:
        timeout: the timeout in seconds.
        hung: the processes that had to be killed.
    """
    lines = [f"The run exceeded its --timeout of {timeout:g} s; all processes were ended.", *_about_hung(hung)]
    return Ended(124, "\n".join([*lines, _RESTART]))


def by_signal(number: int) -> Ended:
    """The launcher received a signal to stop.

    Args:
        number: the signal.
    """
    return Ended(128 + number, f"{_signal_name(number)}: all processes were ended.")


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
