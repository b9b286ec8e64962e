"""What can be wrong with a checkpoint, and what helps.

CheckpointError                (SupremumError, ValueError) a file that is no whole checkpoint of the kind asked for
└── CheckpointFileError        (also OSError) the file system refuses
    └── MissingCheckpointError   (also FileNotFoundError) there is no such file
"""

from __future__ import annotations

import errno
from pathlib import Path

from supremum.errors import SupremumError, near_names


class CheckpointError(SupremumError, ValueError):
    """A checkpoint that is damaged, cut short, of another kind or not ours; the message names the file."""


class CheckpointFileError(CheckpointError, OSError):
    """A checkpoint that the file system does not let us read or write; has `errno` and `filename`."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingCheckpointError(CheckpointFileError, FileNotFoundError):
    """There is no such file."""


_IS_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_IS_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_IS_NO_FOLDER = {errno.ENOENT, errno.ENOTDIR, errno.EEXIST}


def reading_error(path: Path, error: OSError) -> CheckpointFileError:
    """What to raise when a file cannot be read.

    Args:
        path: the file.
        error: what the file system said.
    """
    if isinstance(error, FileNotFoundError):
        near = near_names(path.name, [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else [])
        hint = "did you mean " + " or ".join(repr(str(path.with_name(name))) for name in near) + "?"
        return _described(MissingCheckpointError, path, error, "there is no such file", hint if near else "")
    fix = f"chmod u+r {str(path)!r}, or copy it to where it may be read" if error.errno in _IS_FORBIDDEN else ""
    return _described(CheckpointFileError, path, error, f"cannot be read: {_words(error)}", fix)


def writing_error(path: Path, error: OSError) -> CheckpointFileError:
    """What to raise when a file cannot be written; the one that was there, if any, is as it was.

    Args:
        path: the file.
        error: what the file system said.
    """
    if error.errno in _IS_FULL:
        fix = "make room, or give a path on another disk; nothing was changed"
    elif error.errno in _IS_FORBIDDEN:
        fix = "give a path in a folder that you may write to"
    elif error.errno in _IS_NO_FOLDER:
        fix = f"{str(path.parent)!r} cannot be made a folder: give a path in one that there is"
    elif error.errno == errno.ENAMETOOLONG:
        fix = "give a shorter name"
    else:
        fix = ""
    return _described(CheckpointFileError, path, error, f"cannot be written: {_words(error)}", fix)


def _words(error: OSError) -> str:
    return error.strerror or str(error)


def _described(kind: type[CheckpointFileError], path: Path, error: OSError, what: str, fix: str) -> CheckpointFileError:
    described = kind(f"{path}: {what}{': ' if fix else ''}{fix}")
    described.errno, described.strerror, described.filename = error.errno, error.strerror, str(path)
    return described
