"""Files that are whole or absent: written beside their place and moved into it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

# Name, ending; the letters in between are those of `tempfile`.
_TEMPORARY = re.compile(r"\.(.*)\.partial-[a-z0-9_]{8}(\.[^.]*|)", re.DOTALL)


@contextmanager
def whole_file(path: Path) -> Generator[Path]:
    """A path to write to; what is there when the block ends without error replaces `path` at once.

    What a killed writer of the same path left behind is removed first.

    Args:
        path: where the file shall be; its folder is made if need be.

    Yields:
        A temporary path in the same folder, with the same ending.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with whole_file(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> [file.name for file in folder.iterdir()], (folder / "a.txt").read_text()
    (['a.txt'], 'all of it')
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, re.escape(path.name))
    handle, temporary = _locked_temporary(path)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def remove_leftovers(folder: Path, names: str) -> None:
    """Remove the temporary files of writers that were killed; those of writers that still live stay.

    Args:
        folder: where to look.
        names: a regular expression for the names that the whole files would have had.
    """
    if sys.platform == "win32":
        return  # no telling who lives
    # In a folder that may not be listed nothing is found; of one file, another may be faster, or the writer done.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _TEMPORARY.fullmatch(entry.name)
            if found and re.fullmatch(names, found[1] + found[2]) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_unless_locked(Path(entry.path))


def _remove_unless_locked(temporary: Path) -> None:
    handle = os.open(temporary, os.O_RDWR)
    try:
        flock(handle, LOCK_EX | LOCK_NB)  # the lock of a killed process ends with it
        temporary.unlink()
    finally:
        os.close(handle)


def _locked_temporary(path: Path) -> tuple[int | None, Path]:
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}.partial-", suffix=path.suffix, dir=path.parent)
        if sys.platform == "win32":
            os.close(handle)  # what is open can be neither moved nor removed there
            return None, Path(name)
        with suppress(OSError):  # a file system without locks: nobody removes leftovers there
            flock(handle, LOCK_EX)
        # Before it was locked it could have been taken for a leftover.
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    # Some file systems cannot; the file is in its place whatever they say.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
