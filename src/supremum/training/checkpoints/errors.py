"""Errors about checkpoints, with fixes.

CheckpointError                (SupremumError, ValueError) a file that is not a complete checkpoint of the expected kind
└── CheckpointFileError        (also FileError, an OSError) the file system reports an error
    └── MissingCheckpointError   (also FileNotFoundError) the file does not exist
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from supremum.atomic_files import reading_error
from supremum.errors import FileError, SupremumError


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

    >>> import errno, tempfile
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


REMEDY = "load another checkpoint, or save this one again"
"""How to fix a damaged checkpoint."""


def damage_error(path: Path, what: str) -> CheckpointError:
    """Make the error for a damaged checkpoint.

    Args:
        path: the checkpoint.
        what: what is wrong with it.
    """
    return CheckpointError(f"{path} is damaged: {what}; {REMEDY}")


@contextmanager
def reading_errors(path: Path, problem: str) -> Generator[None]:
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
        kind = MissingCheckpointError if isinstance(error, FileNotFoundError) else CheckpointFileError
        raise reading_error(path, error, kind) from error
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise damage_error(path, f"{problem} ({type(error).__name__}: {error!s:.500})") from error
