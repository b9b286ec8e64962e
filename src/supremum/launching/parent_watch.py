"""A wrapper that replaces itself with a program that ends if the launcher dies for any reason.

It runs as a file with the launcher's process id, the guard's pipe, the program and its arguments. It sends its process
id to the guard before it runs the program, so the process is always watched. On Linux it also asks the kernel to kill
it, which survives `execv` (prctl(2), PR_SET_PDEATHSIG). `preexec_fn` would need no file, but is unsafe with threads.
"""

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(launcher: str, pipe: str, *command: str) -> None:
    """Ask the kernel for the signal, tell the guard, and run the command in this process.

    Args:
        launcher: the process id of the launcher.
        pipe: the file descriptor that the guard reads from.
        command: the program and its arguments.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(BrokenPipeError):  # the guard was killed
        os.write(int(pipe), b"%d\n" % os.getpid())
    os.set_inheritable(int(pipe), False)
    if os.getppid() == int(launcher):  # otherwise the launcher has died already
        os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
