"""Folders that are complete or absent: all processes write next to the final path, and the first moves the folder.

To replace a folder, a writer moves the old one aside and then moves the new one to its path. A writer that is killed
between these moves leaves both folders next to the path, and only then do both exist there. Readers then use the old
folder, until the next writer moves it back. Anything else next to a folder is a leftover. Symbolic links are followed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import jax
import numpy as np
from jax.experimental import multihost_utils

from supremum.training.checkpoints.errors import CheckpointError

# Folders that are being written, to which orbax gives longer names, and folders that are being replaced.
_TEMPORARY = re.compile(r"\.(.*)\.(?:partial|replaced)-folder(?:\.orbax.*)?", re.DOTALL)
_REPLACED = re.compile(r"\.(.*)\.replaced-folder", re.DOTALL)


@contextmanager
def together() -> Generator[None]:
    """Wait at the end of the block until every process reaches it; if one fails, the block fails in all.

    Raises:
        CheckpointError: if another process failed; that process raises its own error.

    >>> with together():
    ...     print("every process does this")
    every process does this
    """
    failure: Exception | None = None
    try:
        yield
    except Exception as error:
        failure = error
    if jax.process_count() > 1:
        fine = np.asarray(multihost_utils.process_allgather(np.bool_(failure is None)))
        if failure is None and not fine.all():
            others = ", ".join(map(str, np.flatnonzero(~fine)))
            raise CheckpointError(f"process {others} of {len(fine)} failed, so all were stopped; see its own error")
    if failure is not None:
        raise failure


def is_first() -> bool:
    """Whether this is the process that does what only one process must do."""
    return jax.process_index() == 0


@contextmanager
def whole_folder(folder: Path) -> Generator[Path]:
    """Yield a path for a new folder, which replaces the existing one if the block ends without an error.

    Every process must enter the block, and the first moves the folders; if one fails, all fail.

    Args:
        folder: the final path; missing parent folders are created.

    Yields:
        A path next to it, which does not exist.
    """
    folder = Path(os.path.realpath(folder))
    partial = _beside(folder, "partial")
    with together():
        if is_first():
            folder.parent.mkdir(parents=True, exist_ok=True)
            _move_back(folder)
            _remove_partial(folder)
    try:
        with together():
            yield partial
        with together():
            if is_first():
                _move(partial, folder)
    finally:
        if is_first():
            _remove_partial(folder)


def readable(folder: Path) -> Path:
    """Return where to read a folder: its path, or one next to it if a writer was killed while replacing it."""
    folder = Path(os.path.realpath(folder))
    aside = _beside(folder, "replaced")
    return aside if not folder.exists() and aside.is_dir() and _beside(folder, "partial").is_dir() else folder


def whole_names(around: Path) -> set[Path]:
    """Return the paths in a folder, including those of folders whose writer was killed while replacing them.

    Args:
        around: the folder to look in; if it does not exist, nothing is found.
    """
    there = set(around.iterdir()) if around.is_dir() else set[Path]()
    aside = {around / found[1] for path in there if (found := _REPLACED.fullmatch(path.name))}
    return there | {folder for folder in aside if readable(folder).is_dir()}


def remove_leftover_folders(around: Path, names: str) -> None:
    """Remove what killed writers of folders left behind.

    Args:
        around: the folder to look in.
        names: a regular expression for the names that the complete folders would have had.
    """
    for path in tuple(around.iterdir()) if around.is_dir() else ():
        found = _TEMPORARY.fullmatch(path.name)
        if found and re.fullmatch(names, found[1]) and path.is_dir():
            _move_back(around / found[1])
            shutil.rmtree(path, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder; readers never see part of it.

    Args:
        folder: the folder; if there is none, nothing happens.
    """
    aside = _beside(folder, "partial")
    for left in (_beside(folder, "replaced"), aside):
        shutil.rmtree(left, ignore_errors=True)
    with suppress(FileNotFoundError):
        folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def _move_back(folder: Path) -> None:
    """Move back a folder whose writer was killed while replacing it."""
    there = readable(folder)
    place = Path(os.path.realpath(folder))
    if there != place:
        there.rename(place)


def _beside(folder: Path, what: str) -> Path:
    return folder.with_name(f".{folder.name}.{what}-folder")


def _move(partial: Path, folder: Path) -> None:
    aside = _beside(folder, "replaced")
    if folder.exists():
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
    try:
        partial.rename(folder)
    except OSError:
        if aside.is_dir():
            aside.rename(folder)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _remove_partial(folder: Path) -> None:
    start = _beside(folder, "partial").name
    for path in folder.parent.iterdir() if folder.parent.is_dir() else ():
        if path.name == start or path.name.startswith(start + ".orbax"):
            shutil.rmtree(path, ignore_errors=True)
