"""Errors about checkpoints, with fixes.

CheckpointError                (SupremumError, ValueError) a file that is not a complete checkpoint of the expected kind
└── CheckpointFileError        (also FileError, an OSError) the file system reports an error
    └── MissingCheckpointError   (also FileNotFoundError) the file does not exist
"""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from supremum.atomic_files import described_error, reason
from supremum.errors import FileError, SupremumError, near_names


class CheckpointError(SupremumError, ValueError):
    """A checkpoint that is damaged, truncated, of the wrong kind or not ours; the message names the file.

    >>> import tempfile
    >>> from supremum import training
    >>> path = Path(tempfile.mkdtemp()) / "weights.safetensors"
    >>> _ = path.write_text("not a checkpoint")
    >>> try:
    ...     training.load_arrays(path)
    ... except training.CheckpointError as error:
    ...     print(type(error).__name__)
    CheckpointError
    """


class CheckpointFileError(CheckpointError, FileError):
    """A checkpoint that the file system cannot read or write; has `errno` and `filename`.

    >>> import tempfile
    >>> from supremum import training
    >>> try:
    ...     training.load_arrays(tempfile.mkdtemp() + "/missing.safetensors")
    ... except training.CheckpointFileError as error:
    ...     print(error.errno == errno.ENOENT)
    True
    """


class MissingCheckpointError(CheckpointFileError, FileNotFoundError):
    """A checkpoint file that does not exist.

    >>> import tempfile
    >>> from supremum import training
    >>> try:
    ...     training.load_arrays(tempfile.mkdtemp() + "/missing.safetensors")
    ... except training.MissingCheckpointError:
    ...     print("start from the beginning")
    start from the beginning
    """


_PERMISSION_ERRORS = {errno.EACCES, errno.EPERM, errno.EROFS}


def reading_error(path: Path, error: OSError) -> CheckpointFileError:
    """Make the error for a file that cannot be read.

    Args:
        path: the file.
        error: the error of the file system.
    """
    if isinstance(error, FileNotFoundError):
        near = near_names(path.name, [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else [])
        hint = "did you mean " + " or ".join(repr(str(path.with_name(name))) for name in near) + "?"
        return described_error(MissingCheckpointError, path, error, "there is no such file", hint if near else "")
    is_forbidden = error.errno in _PERMISSION_ERRORS
    fix = f"chmod u+r {str(path)!r}, or copy it to a place where you can read it" if is_forbidden else ""
    return described_error(CheckpointFileError, path, error, f"cannot be read: {reason(error)}", fix)


REMEDY = "load another checkpoint, or save this one again"
"""How to fix a damaged checkpoint."""


def damaged(path: Path, what: str) -> CheckpointError:
    """Make the error for a damaged checkpoint.

    Args:
        path: the checkpoint.
        what: what is wrong with it.
    """
    return CheckpointError(f"{path} is damaged: {what}; {REMEDY}")


@contextmanager
def reading(path: Path, problem: str) -> Generator[None]:
    """Convert errors in the block to errors about the checkpoint that it reads.

    Args:
        path: the file or folder.
        problem: the description for errors that a damaged checkpoint can cause.

    Raises:
        CheckpointError: for any error that the file system or damaged data can cause.
    """
    try:
        yield
    except CheckpointError:
        raise
    except OSError as error:
        raise reading_error(path, error) from error
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise damaged(path, f"{problem} ({type(error).__name__}: {error!s:.500})") from error
