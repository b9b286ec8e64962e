"""Read whole files, but not devices, whose content may have no end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def file_content(file: Path) -> bytes:
    """Read a file or a pipe to its end.

    Args:
        file: the file.

    Raises:
        OSError: if it cannot be read, or is a device: `/dev/zero` and `/dev/full` would fill the memory.

    >>> file_content(Path("/dev/zero"))
    Traceback (most recent call last):
        ...
    OSError: [Errno 22] it is a device, not a file: '/dev/zero'
    """
    with file.open("rb") as opened:
        mode = os.fstat(opened.fileno()).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise OSError(errno.EINVAL, "it is a device, not a file", str(file))
        return opened.read()
