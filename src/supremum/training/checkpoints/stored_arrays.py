"""Named arrays of every number format on the disk, in one file or in a folder, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from supremum.argument_checks import chosen, mapping
from supremum.atomic_files import as_path
from supremum.training.checkpoints.arrays_file import load_file, save_file, texts_of_file
from supremum.training.checkpoints.arrays_folder import load_folder, save_folder, texts_of_folder
from supremum.training.checkpoints.atomic_directories import readable
from supremum.training.checkpoints.errors import reading

_FILE, FOLDER = "safetensors", "orbax"

Choice: TypeAlias = Callable[[tuple[str, ...], Mapping[str, str]], Mapping[str, Any]]
"""A function of the names and the metadata that are stored: which to load, and what each is to be placed like."""


def save_arrays(
    path: str | os.PathLike[str],
    arrays: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    *,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write arrays to a file or folder; it replaces the one that is there when it is whole, or not at all.

    A file is put together in memory, is on the disk before it has its name, and holds no pickle. A folder is written by
    orbax-checkpoint: of an array that is sharded each process writes what it has, and nothing is gathered. Where arrays
    are shared by several processes, every process makes the call.

    Args:
        path: where; the folder it is in is made if need be, `~` is the home folder. A symbolic link stays, and what it
            points to is replaced; a FIFO or a device gets the bytes of a file.
        arrays: by name: arrays of JAX or NumPy of any shape and any of `supremum.formats`, and keys of `jax.random`.
        metadata: texts by name, to be given back with them.
        format: `"safetensors"` for a file, which None means as well, or `"orbax"` for a folder.

    Raises:
        UnknownNameError: for another format.
        OperandError: for anything else, or not a text.
        ArgumentError: for an array that was donated, a name that UTF-8 has no bytes for, or an array that is spread
            over several processes and should be in one file.
        CheckpointFileError: where it cannot be written; an `OSError`. What was there is as it was.
        ImportError: without orbax-checkpoint, for its format.

    >>> import tempfile, ml_dtypes
    >>> import numpy as np
    >>> path = tempfile.mkdtemp() + "/a.safetensors"
    >>> save_arrays(path, {"a/b": np.array([0.5, 2], ml_dtypes.float8_e5m2)}, {"by": "hand"})
    >>> load_arrays(path)
    ({'a/b': array([0.5, 2], dtype='float8_e5m2')}, {'by': 'hand'})
    """
    save = save_folder if checked_format(format) == FOLDER else save_file
    named = mapping("arrays", arrays, "{'kernel': kernel}")
    save(as_path(path), named, {} if metadata is None else mapping("metadata", metadata, "{'by': 'hand'}"))


def checked_format(format: str | None) -> str:  # noqa: A002
    """The name of a format, if it is one; `"safetensors"` for None.

    Raises:
        UnknownNameError: if it is none.
    """
    return _FILE if format is None else chosen("format", format, (_FILE, FOLDER))


def load_arrays(
    path: str | os.PathLike[str], *, like: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read what `save_arrays` wrote, bit for bit, or nothing.

    Args:
        path: the file or folder.
        like: arrays of JAX by name, or `jax.ShapeDtypeStruct` with a sharding: what is in a folder and has the same
            name, shape and dtype becomes an array of JAX of that sharding, whichever it was saved with, of which each
            device reads its own part.

    Returns:
        The arrays by name, in the order they were given in, as arrays of NumPy, keys of `jax.random` as such; and the
        metadata.

    Raises:
        MissingCheckpointError: where there is none; a `FileNotFoundError`.
        CheckpointFileError: where it cannot be read; an `OSError`.
        CheckpointError: for one that is damaged, cut short, empty, of another program, or of a newer version.
        ImportError: without orbax-checkpoint, for a folder.
    """
    placed = {} if like is None else mapping("like", like, "{'kernel': kernel}")
    return load_chosen(path, lambda names, _: {name: placed.get(name) for name in names})


def load_chosen(path: str | os.PathLike[str], choose: Choice) -> tuple[dict[str, Any], dict[str, str]]:
    """Read some of what `save_arrays` wrote.

    Args:
        path: the file or folder.
        choose: which, and as for `like`; None for an array of NumPy.

    Returns:
        As `load_arrays`.

    Raises:
        CheckpointError: as there.
    """
    place = as_path(path)
    if _is_folder(place):
        return load_folder(place, choose)
    arrays, metadata = load_file(place)
    return {name: arrays[name] for name in choose(tuple(arrays), metadata)}, metadata


def load_texts(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read the metadata alone of what `save_arrays` wrote, which takes no time.

    Args:
        path: the file or folder.

    Raises:
        CheckpointError: as `load_arrays`, as far as the arrays have nothing to do with it.
    """
    place = as_path(path)
    return texts_of_folder(place) if _is_folder(place) else texts_of_file(place)


def _is_folder(place: Path) -> bool:
    with reading(place, "it has no path"):
        return readable(place).is_dir()
