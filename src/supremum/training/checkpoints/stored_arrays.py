"""Save and load named arrays of every number format, in one file or in a folder."""

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
"""A function of the stored names and metadata; it returns the names to load, each with an array to place it like."""


def save_arrays(
    path: str | os.PathLike[str],
    arrays: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    *,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write arrays to a file or folder; it replaces an existing one only once it is complete.

    A file is assembled in memory, gets its name only after it is on disk, and contains no pickle. orbax-checkpoint
    writes folders: each process writes its own part of a sharded array, and nothing is gathered. If several processes
    share arrays, every process must make the call.

    Args:
        path: where to write. Missing parent folders are created, and `~` is the home folder. A symbolic link stays,
            and its target is replaced; a FIFO or a device receives the bytes of a file.
        arrays: JAX or NumPy arrays by name, of any shape and any of `supremum.formats`, and `jax.random` keys.
        metadata: strings by name, which loading returns with the arrays.
        format: `"safetensors"` for a file, the default, or `"orbax"` for a folder.

    Raises:
        UnknownNameError: for any other format.
        OperandError: for values other than arrays or keys, and for metadata that are not strings.
        ArgumentError: for an array that was donated, a name that UTF-8 cannot encode, or, with one file, an array that
            is spread over several processes.
        CheckpointFileError: if the path cannot be written; an `OSError`. An existing checkpoint is unchanged.
        ImportError: for the format `"orbax"` without orbax-checkpoint.

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
    """Return the name of a checkpoint format after checking it; `"safetensors"` for None.

    Raises:
        UnknownNameError: for an unknown format.
    """
    return _FILE if format is None else chosen("format", format, (_FILE, FOLDER))


def load_arrays(
    path: str | os.PathLike[str], *, like: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read what `save_arrays` wrote, bit for bit, or nothing.

    Args:
        path: the file or folder.
        like: JAX arrays by name, or `jax.ShapeDtypeStruct` with a sharding. An array in a folder with the same name,
            shape and dtype is loaded as a JAX array with that sharding, regardless of how it was sharded when saved;
            each device reads its own part.

    Returns:
        The arrays by name, in the order in which they were saved, as NumPy arrays, and `jax.random` keys as keys; and
        the metadata.

    Raises:
        MissingCheckpointError: if the path does not exist; a `FileNotFoundError`.
        CheckpointFileError: if the checkpoint cannot be read; an `OSError`.
        CheckpointError: for a checkpoint that is damaged, truncated, empty, from another program, or of a newer
            version.
        ImportError: for a folder without orbax-checkpoint.
    """
    placed = {} if like is None else mapping("like", like, "{'kernel': kernel}")
    return load_chosen(path, lambda names, _: {name: placed.get(name) for name in names})


def load_chosen(path: str | os.PathLike[str], choose: Choice) -> tuple[dict[str, Any], dict[str, str]]:
    """Read some of what `save_arrays` wrote.

    Args:
        path: the file or folder.
        choose: selects the arrays, each with an array to place it like, or None for a NumPy array.

    Returns:
        As for `load_arrays`.

    Raises:
        CheckpointError: as for `load_arrays`.
    """
    place = as_path(path)
    if _is_folder(place):
        return load_folder(place, choose)
    arrays, metadata = load_file(place)
    return {name: arrays[name] for name in choose(tuple(arrays), metadata)}, metadata


def load_texts(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read only the metadata of what `save_arrays` wrote, which is fast.

    Args:
        path: the file or folder.

    Raises:
        CheckpointError: as for `load_arrays`, except for damage to the arrays themselves.
    """
    place = as_path(path)
    return texts_of_folder(place) if _is_folder(place) else texts_of_file(place)


def _is_folder(place: Path) -> bool:
    with reading(place, "it has no path"):
        return readable(place).is_dir()
