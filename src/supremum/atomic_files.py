"""Atomic writes: a temporary file in the same folder replaces the target; FIFOs and devices get the bytes directly."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from supremum.errors import FileError, OperandError, near_names, shortened, shown

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

# Groups: the name and the ending; `tempfile` makes the letters in between.
_TEMPORARY = re.compile(r"\.(.*)\.partial-[a-z0-9_]{8}(\.[^.]*|)", re.DOTALL)


E = TypeVar("E", bound=FileError)

_NO_FOLDER = {errno.ENOENT, errno.ENOTDIR, errno.EEXIST}
_PERMISSION_ERRORS = (errno.EACCES, errno.EPERM, errno.EROFS)
_FIXES: dict[int | None, str] = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room, or give a path on another disk; nothing was changed"
    ),
    **dict.fromkeys(_PERMISSION_ERRORS, "give a path in a folder that you may write to"),
    errno.EISDIR: "give the path of a file in it",
    errno.ENAMETOOLONG: "give a shorter name",
}
# The file descriptors of a process, which shells use to redirect output: their targets are written to, not replaced.
_DESCRIPTORS = re.compile(r"/proc/[^/]+(/task/[^/]+)?/fd|/dev/fd")


def as_path(path: str | os.PathLike[str]) -> Path:
    """Convert a path from a user, with `~` expanded to the home folder.

    Args:
        path: a string or a path.

    Raises:
        OperandError: if `path` is neither; a `TypeError`.
        FileError: if the path has a NUL in it, or `~` has no home folder to stand for.
    """
    try:
        result = Path(path).expanduser()
    except TypeError as error:
        raise OperandError(f"a path must be a str or a pathlib.Path, got {shown(path)}") from error
    except RuntimeError as error:
        what = FileNotFoundError(errno.ENOENT, str(error))
        raise _described_error(FileError, Path(path), what, str(error), "write the folder out") from error
    if "\0" in str(result):
        what = OSError(errno.EINVAL, "a path must not contain NUL")
        raise _described_error(FileError, result, what, "a path must not contain NUL", "give another name")
    return result


def is_file(path: Path) -> bool:
    """Whether there is a regular file at a path; False for a path that no file can have."""
    return os.path.isfile(path)  # noqa: PTH113 (`Path.is_file` raises for some paths, such as too long ones)


@contextmanager
def whole_file(path: Path) -> Generator[Path]:
    """Write a file atomically: the temporary file replaces `path` when the block ends without an error.

    A symbolic link is kept, and the file that it points to is replaced. A FIFO, a device or an open file descriptor
    such as `/dev/stdout` is not replaced: the bytes are written to it when the block ends. Temporary files that killed
    writers of the same path left behind are removed first.

    Args:
        path: the path of the file; its folder is created if needed.

    Yields:
        A temporary path with the same ending, in the same folder if `path` is a regular file or new.

    Raises:
        OSError: if the file cannot be written.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with whole_file(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> [file.name for file in folder.iterdir()], (folder / "a.txt").read_text()
    (['a.txt'], 'all of it')
    """
    place = _place(path)
    if place is None:
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder, "written").with_suffix(path.suffix)
            yield temporary
            with temporary.open("rb") as written, path.open("wb") as there:
                shutil.copyfileobj(written, there)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(place.parent, re.escape(place.name))
    handle, temporary = _locked_temporary(place)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(_mode(place))
        temporary.replace(place)
        _sync_folder(place.parent)
    except BaseException:
        with suppress(OSError):  # the error of the block matters more
            temporary.unlink(missing_ok=True)
        raise
    finally:
        if handle is not None:
            os.close(handle)


def check_writable(path: Path) -> None:
    """Raise early if `whole_file` would fail; no file is created, changed or removed.

    Args:
        path: the file to write later.

    Raises:
        FileError: if the file cannot be written, as far as that can be known in advance.
    """
    try:
        place = _place(path)
        if place is None:
            return
        folder = place.parent
        while not folder.exists():
            folder = folder.parent
        handle, temporary = _locked_temporary(folder / place.name)
        if handle is not None:
            os.close(handle)
        temporary.unlink(missing_ok=True)
    except OSError as error:
        raise writing_error(path, error) from error


def writing_error(path: Path, error: OSError, kind: type[E] = FileError) -> E:
    """Make the error for a file that cannot be written; an existing file has not changed.

    Args:
        path: the file.
        error: the error of the file system.
        kind: the class of the new error.
    """
    fix = _FIXES.get(error.errno, "")
    if error.errno in _NO_FOLDER:
        is_there = path.parent.is_dir()
        folder = shown(str(path.parent))
        fix = "give a path in another folder" if is_there else f"{folder} cannot be made a folder: give one that exists"
    return _described_error(kind, path, error, f"cannot be written: {_reason(error)}", fix)


def reading_error(path: Path, error: OSError, kind: type[E] = FileError) -> E:
    """Make the error for a file that cannot be read.

    Args:
        path: the file.
        error: the error of the file system.
        kind: the class of the new error.
    """
    if isinstance(error, FileNotFoundError):
        near = near_names(path.name, [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else [])
        hint = "did you mean " + " or ".join(repr(str(path.with_name(name))) for name in near) + "?"
        return _described_error(kind, path, error, "there is no such file", hint if near else "")
    is_forbidden = error.errno in _PERMISSION_ERRORS
    fix = f"chmod u+r {str(path)!r}, or copy it to a place where you can read it" if is_forbidden else ""
    return _described_error(kind, path, error, f"cannot be read: {_reason(error)}", fix)


def _reason(error: OSError) -> str:
    """The message of the file system, without the path."""
    return error.strerror or str(error)


def _described_error(kind: type[E], path: Path, error: OSError, what: str, fix: str) -> E:
    """Make an error about a file with the attributes of a file system error.

    Args:
        kind: the class of the error.
        path: the file.
        error: the error of the file system.
        what: the problem.
        fix: how to fix it; empty if unknown.
    """
    described = kind(f"{shortened(str(path))}: {what}{': ' if fix else ''}{fix}")
    described.errno, described.strerror, described.filename = error.errno, error.strerror, str(path)
    return described


def _place(path: Path) -> Path | None:
    """The path of the file with symbolic links resolved; None for a FIFO, device or descriptor, which is not replaced.

    Raises:
        OSError: if the path is a folder, cannot be written, or cannot be a path of a file.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "its name contains NUL")
    # Check the temporary name, which is longer than the final one.
    with suppress(FileNotFoundError):
        os.lstat(path.parent / f".{path.stem}.partial-xxxxxxxx{path.suffix}")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return Path(os.path.realpath(path))
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return Path(os.path.realpath(path)) if stat.S_ISREG(mode) and not _is_descriptor(path) else None


def _is_descriptor(path: Path) -> bool:
    """Whether a path leads through the open files of a process."""
    while True:
        if _DESCRIPTORS.fullmatch(os.path.realpath(path.parent)):
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()


def _mode(place: Path) -> int:
    """The permissions of the existing file, or those of a new file."""
    try:
        return stat.S_IMODE(place.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)  # the only way to read it is to set it
        os.umask(mask)
        return 0o666 & ~mask


def remove_leftovers(folder: Path, names: str) -> None:
    """Remove the temporary files of killed writers; those of running writers stay.

    Args:
        folder: where to look.
        names: a regular expression for the names of the final files.
    """
    if sys.platform == "win32":
        return  # no way to tell which writers still run
    # Ignore a folder that cannot be listed, and a file that another process removed or its writer renamed meanwhile.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry.name)
            if match and re.fullmatch(names, match[1] + match[2]) and entry.is_file(follow_symlinks=False):
                with suppress(OSError), Path(entry.path).open("r+b") as leftover:
                    flock(leftover, LOCK_EX | LOCK_NB)  # the lock of a killed process ends with it
                    Path(entry.path).unlink()


def _locked_temporary(path: Path) -> tuple[int | None, Path]:
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}.partial-", suffix=path.suffix, dir=path.parent)
        if sys.platform == "win32":
            os.close(handle)  # Windows can neither move nor remove an open file
            return None, Path(name)
        with suppress(OSError):  # without file locks, nobody removes leftovers
            flock(handle, LOCK_EX)
        # Before the lock, another process could have removed the file as a leftover.
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    # Some file systems cannot sync folders; the file is in its place all the same.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
