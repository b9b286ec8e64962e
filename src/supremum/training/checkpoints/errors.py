"""What can be wrong with a checkpoint, and what helps.

CheckpointError                (SupremumError, ValueError) a file that is no whole checkpoint of the kind asked for
└── CheckpointFileError        (also FileError, an OSError) the file system refuses
    └── MissingCheckpointError   (also FileNotFoundError) there is no such file
"""

from __future__ import annotations

import errno
from pathlib import Path

from supremum.atomic_files import described_error, reason
from supremum.errors import FileError, SupremumError, near_names


class CheckpointError(SupremumError, ValueError):
    """A checkpoint that is damaged, cut short, of another kind or not ours; the message names the file."""


class CheckpointFileError(CheckpointError, FileError):
    """A checkpoint that the file system does not let us read or write; has `errno` and `filename`."""


class MissingCheckpointError(CheckpointFileError, FileNotFoundError):
    """There is no such file."""


_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def reading_error(path: Path, error: OSError) -> CheckpointFileError:
    """What to raise when a file cannot be read.

    Args:
        path: the file.
        error: what the file system said.
    """
    if isinstance(error, FileNotFoundError):
        near = near_names(path.name, [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else [])
        hint = "did you mean " + " or ".join(repr(str(path.with_name(name))) for name in near) + "?"
        return described_error(MissingCheckpointError, path, error, "there is no such file", hint if near else "")
    fix = f"chmod u+r {str(path)!r}, or copy it to where it may be read" if error.errno in _FORBIDDEN else ""
    return described_error(CheckpointFileError, path, error, f"cannot be read: {reason(error)}", fix)
