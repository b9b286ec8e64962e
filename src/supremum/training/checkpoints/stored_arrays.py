"""Save and load named arrays of every number format, in a safetensors file or in a folder with such a file.

The arrays are tensors of the file under their own names, so any safetensors reader finds them. Formats without a dtype
in the storage are stored as bytes, with one more axis. One entry of the metadata, `"supremum"`, is a checksum and JSON
with the format, shape and checksum of each array. Loading therefore detects any flipped bit.

In a folder, orbax-checkpoint writes the JAX arrays, each process its own parts: `folder/arrays-N`, which
`orbax.checkpoint.PyTreeCheckpointer().restore` reads. The file beside it, `folder/supremum.safetensors`, has the record
and all other arrays. It names the folder of the arrays, so replacing the file replaces the checkpoint.
"""

from __future__ import annotations

import glob
import importlib
import os
import shutil
import time
from collections.abc import Callable, Generator, Mapping, Set
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.experimental import multihost_utils
from safetensors import SafetensorError, safe_open
from safetensors import numpy as safetensors_numpy

from supremum.argument_checks import chosen, mapping
from supremum.atomic_files import as_path, check_writable, whole_file, writing_error
from supremum.errors import ArgumentError, SupremumError, shown
from supremum.extras import require
from supremum.formats import as_format
from supremum.training.checkpoints.errors import (
    REMEDY,
    CheckpointError,
    CheckpointFileError,
    damage_error,
    reading_errors,
)
from supremum.training.checkpoints.record import ENTRY, Row, describe, is_spread, read_record, restore, write_record

# The safetensors header has an entry of this name that is not a tensor.
_RESERVED = "__metadata__"
_FORMATS = _FILE, _FOLDER = "safetensors", "orbax"
_RECORD, _ARRAYS = "supremum.safetensors", "arrays"
_LOAD = "supremum.nn.load_variables(layer, arrays) loads its arrays"

Described: TypeAlias = Mapping[str, tuple[Row, Any]]
"""The record of each array by name, and the array as it is stored."""


def save_arrays(
    path: str | os.PathLike[str],
    arrays: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    *,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write arrays to a file or folder; it replaces an existing one only once it is complete.

    A file is assembled in memory, gets its name only after it is on disk, and contains no pickle. In a folder
    orbax-checkpoint writes JAX arrays: each process writes its own part of a sharded array, and nothing is gathered. If
    several processes share arrays, every process must make the call.

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
        MissingPackageError: for the format `"orbax"` without orbax-checkpoint.

    >>> import tempfile, ml_dtypes
    >>> import numpy as np
    >>> path = tempfile.mkdtemp() + "/a.safetensors"
    >>> save_arrays(
    ...     path, {"a/b": np.array([0.5, 2], ml_dtypes.float8_e5m2)}, {"by": "hand"}
    ... )
    >>> load_arrays(path)
    ({'a/b': array([0.5, 2], dtype='float8_e5m2')}, {'by': 'hand'})
    """
    save = _save_folder if checkpoint_format(format) == _FOLDER else _save_file
    named = mapping("arrays", arrays, "{'kernel': kernel}")
    save(as_path(path), named, {} if metadata is None else mapping("metadata", metadata, "{'by': 'hand'}"))


def checkpoint_format(format: str | None) -> str:  # noqa: A002
    """Return the name of a checkpoint format after checking it; `"safetensors"` for None.

    Raises:
        UnknownNameError: for an unknown format.
    """
    return _FILE if format is None else chosen("format", format, _FORMATS)


def load_arrays(
    path: str | os.PathLike[str], *, like: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read what `save_arrays` wrote, bit for bit, or nothing.

    Args:
        path: the file or folder.
        like: JAX arrays by name, or `jax.ShapeDtypeStruct` with a sharding. A JAX array that was saved to a folder,
            with the same name, shape and dtype, is loaded as a JAX array with that sharding, regardless of how it was
            sharded when saved; each device reads its own part.

    Returns:
        The arrays by name, in the order in which they were saved, as NumPy arrays, and `jax.random` keys as keys; and
        the metadata.

    Raises:
        MissingCheckpointError: if the path does not exist; a `FileNotFoundError`.
        CheckpointFileError: if the checkpoint cannot be read; an `OSError`.
        CheckpointError: for a checkpoint that is damaged, truncated, empty, from another program, or of a newer
            version.
        MissingPackageError: for a folder with arrays of orbax-checkpoint, if it is not installed.

    >>> import tempfile
    >>> import ml_dtypes
    >>> path = tempfile.mkdtemp() + "/arrays.safetensors"
    >>> save_arrays(path, {"w": np.ones(2, ml_dtypes.bfloat16)}, {"step": "7"})
    >>> arrays, metadata = load_arrays(path)
    >>> arrays["w"].dtype, metadata
    (dtype(bfloat16), {'step': '7'})
    """
    return load_section(path, {} if like is None else mapping("like", like, "{'kernel': kernel}"), lambda _: "")


def load_section(
    path: str | os.PathLike[str], like: Mapping[str, Any], prefix_of: Callable[[Mapping[str, str]], str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the arrays whose names start with a prefix, and return them without it.

    Args:
        path: the file or folder.
        like: as for `load_arrays`, by the names without the prefix.
        prefix_of: a function of the metadata that returns the prefix.

    Raises:
        CheckpointError: as for `load_arrays`.
    """
    place = as_path(path)
    wait = wait_for_all if os.path.isdir(place) else nullcontext  # noqa: PTH112 (`Path.is_dir` raises for some paths)
    with wait(), _open_checkpoint(place) as (tensors, record):
        rows, stored = record["arrays"], set(tensors.keys())
        split = {name for name in rows if _stored_name(name) not in stored}
        if len(rows) - len(split) < len(stored) or (split and record["folder"] is None):
            raise damage_error(place, "its arrays differ from those in its record")
        prefix = prefix_of(record["metadata"])
        names = {name: name.removeprefix(prefix) for name in rows if name.startswith(prefix)}
        arrays = {name: tensors.get_tensor(_stored_name(name)) for name in names.keys() - split}
        wanted = {name: (rows[name], like.get(names[name])) for name in names if name in split}
        if wanted:
            arrays |= _read_by_orbax(place, place / record["folder"], wanted)
    with wait(), reading_errors(place, "its arrays are invalid"):
        restored = {short: restore(place, name, rows[name], arrays[name]) for name, short in names.items()}
    return restored, record["metadata"]


def check_savable(path: Path, format: str) -> None:  # noqa: A002
    """Raise early what `save_arrays` would raise for a path; nothing is created, changed or removed.

    Args:
        path: the file or folder to be written.
        format: the format.

    Raises:
        MissingPackageError: for a folder without orbax-checkpoint.
        CheckpointError: for a folder, if the path exists and is neither a checkpoint nor an empty folder.
        FileError: if the path cannot be written, as far as that can be known in advance.
    """
    with _writing_errors(path):
        if format == _FOLDER:
            _orbax()
            _check_replaceable(path)
            path /= _RECORD
        check_writable(path)


def _save_file(file: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write arrays to a file; if several processes share some, the first process writes it, and all wait for it."""
    for name, value in arrays.items():
        if is_spread(value) and not value.is_fully_replicated:
            what = f"{shown(name)} is spread over several processes, so one process cannot write it to a file"
            raise ArgumentError(f'{what}; use format="orbax", with which each process writes its own part')
    is_shared = any(map(is_spread, arrays.values()))
    with wait_for_all() if is_shared else nullcontext(), _writing_errors(file):
        if jax.process_index() == 0 or not is_shared:
            _write(file, {name: describe(name, value, by_orbax=False) for name, value in arrays.items()}, metadata)


def _save_folder(folder: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write arrays to a folder next to the final path, then move it there. Every process must make the call."""
    orbax = _orbax()
    folder = Path(os.path.realpath(folder))
    temporary = f".{folder.name}.partial-folder"
    with _writing_errors(folder):
        _check_replaceable(folder)
        split = {name for name, value in arrays.items() if _is_for_orbax(value)}
        described = {name: describe(name, value, name in split) for name, value in arrays.items()}
        # Each save has its own folder, because orbax may still write into that of a failed save.
        number = int(multihost_utils.broadcast_one_to_all(np.uint32(time.time_ns() % 2**32)))
        partial = folder.with_name(f"{temporary}-{number}")
        try:
            with wait_for_all():
                if jax.process_index() == 0:
                    for leftover in folder.parent.glob(f"{glob.escape(temporary)}*"):
                        shutil.rmtree(leftover, ignore_errors=True)
                    partial.mkdir(parents=True)
            with wait_for_all():
                if split:
                    orbax.PyTreeCheckpointer().save(partial / _ARRAYS, {name: described[name][1] for name in split})
            with wait_for_all():
                if jax.process_index() == 0:
                    _write(partial / _RECORD, described, metadata, split)
                    _move(partial, folder)
        finally:
            if jax.process_index() == 0:
                shutil.rmtree(partial, ignore_errors=True)


def _write(file: Path, described: Described, metadata: Mapping[str, str], split: Set[str] = frozenset()) -> None:
    """Write the record of arrays, and the arrays that orbax does not write."""
    name = f"{_ARRAYS}-{time.time_ns()}" if split else None
    record = write_record({name: row for name, (row, _) in described.items()}, metadata, name)
    tensors = {_stored_name(name): array for name, (_, array) in described.items() if name not in split}
    data = safetensors_numpy.save(tensors, {ENTRY: record})
    if name is not None:
        file.with_name(_ARRAYS).rename(file.with_name(name))
    with whole_file(file) as temporary:
        temporary.write_bytes(data)


def _move(new: Path, folder: Path) -> None:
    """Move a folder to its final path; a kill at any moment leaves the old or the new checkpoint there."""
    if not (folder / _RECORD).is_file():
        new.rename(folder)
        return
    old = list(folder.glob(f"{_ARRAYS}-*"))
    for arrays in new.glob(f"{_ARRAYS}-*"):
        arrays.rename(folder / arrays.name)
    (new / _RECORD).replace(folder / _RECORD)
    for arrays in old:
        shutil.rmtree(arrays, ignore_errors=True)


@contextmanager
def _writing_errors(path: Path) -> Generator[None]:
    """Convert errors in the block to errors about the checkpoint that it writes."""
    try:
        yield
    except SupremumError:
        raise
    except SafetensorError as error:
        raise ArgumentError(f"{path}: safetensors cannot write this: {error}") from error
    except (OSError, ValueError) as error:  # tensorstore raises a ValueError, also if the disk is full
        unchanged = f"{error!s:.500}; an existing checkpoint is unchanged"
        problem = error if isinstance(error, OSError) else OSError(None, unchanged)
        raise writing_error(path, problem, CheckpointFileError) from error


@contextmanager
def wait_for_all() -> Generator[None]:
    """Wait at the end of the block until every process reaches it; if one fails, the block fails in all.

    Raises:
        CheckpointError: if another process failed; that process raises its own error.

    >>> with wait_for_all():
    ...     print("every process does this")
    every process does this
    """
    failure: Exception | None = None
    try:
        yield
    except Exception as error:
        failure = error
    failed = np.flatnonzero(multihost_utils.process_allgather(np.bool_(failure is not None)))
    if failure is not None:
        raise failure
    if failed.size:
        others = f"process {', '.join(map(str, failed))} of {jax.process_count()} failed"
        raise CheckpointError(f"{others}, so all were stopped; see its own error")


def _is_for_orbax(value: Any) -> bool:
    """Whether orbax writes a value: a JAX array with numbers in it, which all processes share."""
    return isinstance(value, jax.Array) and value.size > 0 and (jax.process_count() == 1 or is_spread(value))


def _check_replaceable(folder: Path) -> None:
    """Raise for a folder that has files of others, and for a file."""
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if folder.exists() and not is_empty and not (folder / _RECORD).is_file():
        there = "a folder of other files" if folder.is_dir() else "not a folder"
        raise CheckpointError(f"{folder} is {there} and is not replaced; give another path for the orbax folder")


@contextmanager
def _open_checkpoint(place: Path) -> Generator[tuple[Any, dict[str, Any]]]:
    """Yield the tensors and the record of a checkpoint; errors in the block become errors about the checkpoint."""
    with reading_errors(place, "its record is invalid"):
        file = place / _RECORD if place.is_dir() else place
        if place.is_dir() and not file.is_file():
            fix = f"orbax.checkpoint.PyTreeCheckpointer().restore({shown(str(place))}) reads one of another program"
            what = f"{place} is a folder, not a checkpoint: it has no supremum record"
            raise CheckpointError(f"{what}; {fix}, and {_LOAD}")
        if file.stat().st_size == 0 or not file.is_file():
            what = "empty" if file.is_file() else "not a regular file"
            raise CheckpointError(f"{file} is {what}, not a checkpoint; give the path of a checkpoint")
        try:
            with file.open("rb"), safe_open(file, "numpy") as tensors:
                metadata = tensors.metadata() or {}
                if ENTRY not in metadata:
                    fix = f"safetensors.numpy.load_file({shown(str(file))}) reads it"
                    raise CheckpointError(f"{file} was written by another program, not by supremum; {fix}, and {_LOAD}")
                yield tensors, read_record(place, metadata[ENTRY])
        except SafetensorError as error:
            raise CheckpointError(f"{file} is not a complete safetensors file ({error}); {REMEDY}") from error


def _stored_name(name: str) -> str:
    """Return the name of an array in the file, which differs only if it would clash with the metadata entry."""
    # Names that already end in more underscores get one more too, so that no two names coincide.
    return f"{name}_" if name.rstrip("_") == _RESERVED.rstrip("_") and name.startswith(_RESERVED) else name


def _orbax() -> Any:
    """Import orbax-checkpoint, which only folders need."""
    require("A checkpoint in a folder", "orbax.checkpoint")
    return importlib.import_module("orbax.checkpoint")


def _read_by_orbax(place: Path, folder: Path, wanted: Mapping[str, tuple[Row, Any]]) -> dict[str, Any]:
    """Read arrays that orbax wrote, in the form in which they are stored. Every process must make the call.

    Args:
        place: the checkpoint, for errors.
        folder: the folder of the arrays.
        wanted: the record of each array by name, and an array to place it like, or None for a NumPy array.
    """
    orbax = _orbax()
    forms = {name: _restore_args(orbax, row, like) for name, (row, like) in wanted.items()}
    item = dict.fromkeys(wanted, 0)
    arguments = orbax.args.PyTreeRestore(item=item, restore_args=forms, partial_restore=True)
    try:
        # Unlike its checkpointer, orbax's handler waits for no other process, which may fail to read its parts.
        return orbax.PyTreeCheckpointHandler().restore(folder, args=arguments)
    except FileNotFoundError as error:
        raise damage_error(place, f"a part of it is missing ({error})") from error
    except (OSError, MemoryError):
        raise
    except Exception as error:  # orbax raises nothing more precise for a part that it cannot read
        raise damage_error(place, f"orbax cannot read it ({type(error).__name__}: {error!s:.500})") from error


def _restore_args(orbax: Any, row: Row, like: Any) -> Any:
    spec = tuple(row["shape"]), as_format(row["format"]).dtype
    if like is not None and row["key"] is None and spec == (like.shape, like.dtype):
        return orbax.ArrayRestoreArgs(sharding=like.sharding)
    return orbax.RestoreArgs(restore_type=np.ndarray)
