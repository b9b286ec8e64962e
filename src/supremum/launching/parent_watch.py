"""Becomes a program that ends when the launcher is gone, however that came about.

Run as a file with the launcher's process id, the guard's pipe, the program and its arguments. It tells the guard its
process id before it becomes the program, so that there is no moment in which nobody watches it. On Linux the kernel
kills it too: that wish survives `execv` (prctl(2), PR_SET_PDEATHSIG). A function between fork and exec would need no
file, and is unsafe beside threads.
"""

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(launcher: str, pipe: str, *command: str) -> None:
    """Ask for the signal, tell the guard, and run the command in this process.

    Args:
        launcher: its process id.
        pipe: the file descriptor that the guard reads from.
        command: program and arguments.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(BrokenPipeError):  # the guard has been ended
        os.write(int(pipe), b"%d\n" % os.getpid())
    os.set_inheritable(int(pipe), False)
    if os.getppid() == int(launcher):  # else it was gone before it could be followed
        os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
