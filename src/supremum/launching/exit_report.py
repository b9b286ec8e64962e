"""How a process ended, in words and as an exit code."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Mapping

_RESTART = "Start the same command again: a script that restores its last checkpoint loses only the steps since."


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """What ended a run.

    Args:
        exit_code: of the run: 0, or that of the process that failed first, 128 and the signal's number where one ended
            it (the shell's convention), 124 where the time was up (that of `timeout` in GNU coreutils).
        message: what happened and what to do, over several lines; empty for success.
    """

    exit_code: int
    message: str = ""


def cause(failed: Mapping[int, int]) -> int:
    """Which of several processes that were found failed at one look failed first.

    JAX aborts the others when one fails, so those that aborted are hardly the cause. A process that was killed is: the
    others raise an error when they lose the connection to it.

    Args:
        failed: exit code by process id, negative for a signal.

    >>> cause({0: -6, 1: 1, 2: -9})
    2
    """
    return min(failed, key=lambda process_id: (failed[process_id] == -signal.SIGABRT, failed[process_id] > 0))


def is_killed(code: int) -> bool:
    """Whether a process was ended by a signal, but for SIGABRT, which it sends to itself.

    Args:
        code: its exit code, negative for a signal.
    """
    return code < 0 and code != -signal.SIGABRT


def by_success() -> Ended:
    """All processes ended with 0."""
    return Ended(0)


def by_failure(
    process_id: int, total: int, returncode: int, seconds: float, last_lines: list[str], hung: list[int]
) -> Ended:
    """One process failed, and the others were ended.

    Args:
        process_id: the one that failed first.
        total: how many processes the run has.
        returncode: as `subprocess` has it, negative for a signal.
        seconds: from the start of the run.
        last_lines: of its standard error.
        hung: the processes that had to be killed, as they did not react to SIGTERM.

    >>> print(by_failure(2, 4, -9, 12.5, ["step 11"], []).message)
    process 2 of 4 was ended by SIGKILL 12.5 s after the start; the others were ended.
    Its last lines on standard error:
      step 11
    Start the same command again: a script that restores its last checkpoint loses only the steps since.
    """
    if returncode < 0:
        how = f"was ended by {_signal_name(-returncode)}"
        exit_code = 128 - returncode
    else:
        how = f"ended with exit code {returncode}"
        exit_code = returncode
    lines = [f"process {process_id} of {total} {how} {seconds:.1f} s after the start; the others were ended."]
    if last_lines:
        lines += ["Its last lines on standard error:", *(f"  {line}" for line in last_lines)]
    return Ended(exit_code, "\n".join([*lines, *_about_hung(hung), _RESTART]))


def by_timeout(timeout: float, hung: list[int]) -> Ended:
    """The time for the whole run was up.

    Args:
        timeout: seconds that it was given.
        hung: the processes that had to be killed.
    """
    lines = [f"the run was not over after {timeout:g} s, its --timeout; all processes were ended.", *_about_hung(hung)]
    return Ended(124, "\n".join([*lines, _RESTART]))


def by_signal(number: int) -> Ended:
    """The launcher was asked to stop.

    Args:
        number: the signal it got.
    """
    return Ended(128 + number, f"{_signal_name(number)}: all processes were ended.")


def _about_hung(hung: list[int]) -> list[str]:
    if not hung:
        return []
    which = f"process {hung[0]}" if len(hung) == 1 else f"processes {', '.join(map(str, hung))}"
    return [f"{which} did not react to SIGTERM and had to be killed: look there first for what hung."]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"
