"""Atomic writes: a temporary file beside the target replaces it; FIFOs and devices get the bytes directly."""

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

from supremum.errors import FileError, OperandError, shortened, shown

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

# Name, ending; the letters in between are those of `tempfile`.
_TEMPORARY = re.compile(r"\.(.*)\.partial-[a-z0-9_]{8}(\.[^.]*|)", re.DOTALL)


E = TypeVar("E", bound=FileError)

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_FOLDER = {errno.ENOENT, errno.ENOTDIR, errno.EEXIST}
# The handles of a process, by which a shell redirects its output: what is behind them is written to, not replaced.
_HANDLES = re.compile(r"/proc/[^/]+(/task/[^/]+)?/fd|/dev/fd")


def as_path(path: str | os.PathLike[str]) -> Path:
    """The path that a user gave, with `~` as the home folder.

    Args:
        path: a text or a path.

    Raises:
        OperandError: for anything else; a `TypeError`.
        FileError: for the home folder of a user that there is not.
    """
    try:
        found = Path(path).expanduser()
    except TypeError as error:
        raise OperandError(f"a path must be a str or a pathlib.Path, got {shown(path)}") from error
    except RuntimeError as error:
        what = FileNotFoundError(errno.ENOENT, str(error))
        raise described_error(FileError, Path(path), what, str(error), "write the folder out") from error
    if "\0" in str(found):
        what = OSError(errno.EINVAL, "a path has no NUL in it")
        raise described_error(FileError, found, what, "a path has no NUL in it", "give another name")
    return found


def is_file(path: Path) -> bool:
    """Whether there is a regular file at a path, however impossible its name."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


@contextmanager
def whole_file(path: Path) -> Generator[Path]:
    """A path to write to; what is there when the block ends without error replaces `path` at once.

    A symbolic link stays, and the file that it points to is replaced. A FIFO, a device or an open file handle such as
    `/dev/stdout` is not replaced: it gets the bytes when the block ends. What a killed writer of the same path left
    behind is removed first.

    Args:
        path: where the file must be; its folder is made if need be.

    Yields:
        A temporary path with the same ending, in the same folder if `path` is to be a file.

    Raises:
        OSError: where it cannot be written.

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
    finally:
        temporary.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def check_writable(path: Path) -> None:
    """Raise now what `whole_file` would raise later; nothing is made, changed or removed.

    Args:
        path: what is to be written.

    Raises:
        FileError: where it cannot be written, as far as can be known before the work is done.
    """
    try:
        place = _place(path)
        if place is None:
            return
        folder = place.parent
        while not folder.exists():
            folder = folder.parent
        handle, temporary = _locked_temporary(folder / place.name)
        temporary.unlink()
        if handle is not None:
            os.close(handle)
    except OSError as error:
        raise writing_error(path, error) from error


def writing_error(path: Path, error: OSError, kind: type[E] = FileError) -> E:
    """What to raise when a file cannot be written; the one that was there, if any, is as it was.

    Args:
        path: the file.
        error: what the file system said.
        kind: the class of what to raise.
    """
    if error.errno in _FULL:
        fix = "make room, or give a path on another disk; nothing was changed"
    elif error.errno in _FORBIDDEN:
        fix = "give a path in a folder that you may write to"
    elif error.errno in _NO_FOLDER:
        is_there = path.parent.is_dir()
        folder = shown(str(path.parent))
        fix = "give a path in another folder" if is_there else f"{folder} cannot be made a folder: give one that exists"
    elif error.errno == errno.EISDIR:
        fix = "give the path of a file in it"
    elif error.errno == errno.ENAMETOOLONG:
        fix = "give a shorter name"
    else:
        fix = ""
    return described_error(kind, path, error, f"cannot be written: {reason(error)}", fix)


def reason(error: OSError) -> str:
    """What the file system said, without the path."""
    return error.strerror or str(error)


def described_error(kind: type[E], path: Path, error: OSError, what: str, fix: str) -> E:
    """An error about a file, with the attributes that errors of the file system have.

    Args:
        kind: its class.
        path: the file.
        error: what the file system said.
        what: what cannot be done.
        fix: what helps; empty where nothing is known.
    """
    described = kind(f"{shortened(str(path))}: {what}{': ' if fix else ''}{fix}")
    described.errno, described.strerror, described.filename = error.errno, error.strerror, str(path)
    return described


def _place(path: Path) -> Path | None:
    """Where the file is or will be, behind all symbolic links; None for what takes bytes and is not replaced.

    Raises:
        OSError: for what is neither, a folder for one.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "its name has a NUL in it")
    # The name that a file has while it is written is the longer one.
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
    return Path(os.path.realpath(path)) if stat.S_ISREG(mode) and not _is_handle(path) else None


def _is_handle(path: Path) -> bool:
    """Whether a path leads through the open files of a process."""
    while True:
        if _HANDLES.fullmatch(os.path.realpath(path.parent)):
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()


def _mode(place: Path) -> int:
    """The permissions of the file that is there, else those of a new one."""
    try:
        return stat.S_IMODE(place.stat().st_mode)
    except FileNotFoundError:
        return 0o666 & ~_umask()


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
