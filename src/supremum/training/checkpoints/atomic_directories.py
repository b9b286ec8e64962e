"""Folders that are whole or absent: written beside their place and moved into it.

A folder that is replaced is moved aside for the moment in which neither has the place. A writer that is killed then
leaves the old one there, whole, and the new one beside it: both are there only then. So the old one is what is read,
until the next writer moves it back. Anything else beside a folder is a leftover. Symbolic links are followed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from supremum.training.checkpoints.process_barrier import is_first, together

# What is being written, which orbax writes under a longer name, and what is being replaced.
_TEMPORARY = re.compile(r"\.(.*)\.(?:partial|replaced)-folder(?:\.orbax.*)?", re.DOTALL)
_REPLACED = re.compile(r"\.(.*)\.replaced-folder", re.DOTALL)


@contextmanager
def whole_folder(folder: Path) -> Generator[Path]:
    """A path for a new folder; when the block ends without error it takes the place of what is there.

    Every process enters the block, and the first moves folders; where one fails, all do.

    Args:
        folder: where it shall be; the folder around it is made if need be.

    Yields:
        A path beside it, at which nothing is.
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
    """Where a folder is: at its place, or beside it, if its writer was killed while replacing it."""
    folder = Path(os.path.realpath(folder))
    aside = _beside(folder, "replaced")
    return aside if not folder.exists() and aside.is_dir() and _beside(folder, "partial").is_dir() else folder


def whole_names(around: Path) -> set[Path]:
    """What is in a folder, and the places of folders whose writer was killed while replacing them.

    Args:
        around: where to look; nothing is found where there is no folder.
    """
    there = set(around.iterdir()) if around.is_dir() else set[Path]()
    aside = {around / found[1] for path in there if (found := _REPLACED.fullmatch(path.name))}
    return there | {folder for folder in aside if readable(folder).is_dir()}


def remove_leftover_folders(around: Path, names: str) -> None:
    """Remove what killed writers of folders left.

    Args:
        around: where to look.
        names: a regular expression for the names that the whole folders would have had.
    """
    for path in tuple(around.iterdir()) if around.is_dir() else ():
        found = _TEMPORARY.fullmatch(path.name)
        if found and re.fullmatch(names, found[1]) and path.is_dir():
            _move_back(around / found[1])
            shutil.rmtree(path, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder; readers never see a part of it.

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
    """Put a folder back whose writer was killed while replacing it."""
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
