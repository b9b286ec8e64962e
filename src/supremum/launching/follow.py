"""Becomes a program that the kernel kills when the launcher is gone, however that came about. Linux only.

Run as a file with the launcher's process id, the program and its arguments. The wish survives `execv`
(prctl(2), PR_SET_PDEATHSIG). A function between fork and exec would need no file, and is unsafe beside threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(launcher: str, *command: str) -> None:
    """Ask for the signal, and run the command in this process.

    Args:
        launcher: its process id.
        command: program and arguments.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == int(launcher):  # else it was gone before it could be followed
        os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
