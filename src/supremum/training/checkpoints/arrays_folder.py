"""Save and load named arrays of every number format in a folder, in which each process writes its own parts.

orbax-checkpoint writes the folder, so `orbax.checkpoint.PyTreeCheckpointer().restore(folder)` finds the arrays under
their names. Formats without a dtype in orbax are stored as bytes. The folder's metadata contain our record, with the
format, shape and checksum of each array.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np

from supremum.atomic_files import check_writable, writing_error
from supremum.errors import ArgumentError, FileError, shown
from supremum.formats import Format, as_format
from supremum.mixed_precision import keep_64_bits
from supremum.training.checkpoints import arrays_record
from supremum.training.checkpoints.arrays_record import ENTRY, Row
from supremum.training.checkpoints.atomic_directories import readable, whole_folder
from supremum.training.checkpoints.checksums import checksum
from supremum.training.checkpoints.errors import REMEDY, CheckpointError, CheckpointFileError, damaged, reading
from supremum.training.checkpoints.process_barrier import is_spread, together

_BYTES = as_format("uint8").dtype
# The keys of orbax's database have at most 65,535 bytes, including the names of parts.
_LONGEST_NAME = 60_000
# The file that orbax puts into every folder of arrays.
_MARK = "_METADATA"


def save_folder(folder: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write arrays to a folder, as `save_arrays` does. Every process must make the call.

    Args:
        folder: where to write.
        arrays: arrays by name.
        metadata: strings by name.

    Raises:
        ArgumentError: if all arrays are empty, or a name is too long for orbax.
        CheckpointError: if the path exists and is neither an orbax folder nor an empty folder.
    """
    orbax = _orbax()
    _check_replaceable(folder)
    rows: dict[str, Row] = {}
    stored: dict[str, Any] = {}
    for name, value in arrays.items():
        rows[name], array = _stored(name, value)
        if array.size:  # orbax cannot save empty arrays
            stored[name] = array
    if not stored:
        raise ArgumentError(
            f"{folder}: orbax cannot save a checkpoint of empty arrays only; give at least one array with numbers in it"
        )
    record = {ENTRY: arrays_record.written_record(rows, metadata)}
    try:
        with whole_folder(folder) as partial:
            writer = orbax.Checkpointer(orbax.PyTreeCheckpointHandler())
            writer.save(partial, args=orbax.args.PyTreeSave(stored), custom_metadata=record)
    except CheckpointError:
        raise
    except OSError as error:
        raise writing_error(folder, error, CheckpointFileError) from error
    except ValueError as error:  # tensorstore raises it, also if the disk is full
        raise CheckpointFileError(
            f"{folder}: cannot be written: {error!s:.500}; an existing checkpoint is unchanged"
        ) from error


def load_folder(
    folder: Path, choose: Callable[[tuple[str, ...], Mapping[str, str]], Mapping[str, Any]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read what `save_folder` wrote, as `load_chosen` does. Every process must make the call.

    Args:
        folder: the folder.
        choose: selects the arrays, each with an array to place it like.
    """
    with together(), _reading(folder):
        place = readable(folder)
        if not (place / _MARK).is_file():
            raise CheckpointError(f"{folder} is a folder, not a checkpoint; give the path of a checkpoint")
        rows, metadata = _record(folder, place)
        chosen = choose(tuple(rows), metadata)
        found = _read(place, {name: (rows[name], like) for name, like in chosen.items()})
    with together(), _reading(folder):
        return {name: _checked(folder, name, rows[name], found.get(name)) for name in chosen}, metadata


def texts_of_folder(folder: Path) -> dict[str, str]:
    """Read the metadata of what `save_folder` wrote, without its arrays.

    Args:
        folder: the folder.
    """
    with _reading(folder):
        return _record(folder, readable(folder))[1]


def check_folder_writable(folder: Path) -> None:
    """Raise early what `save_folder` would raise; nothing is created, changed or removed.

    Args:
        folder: the folder to be written.

    Raises:
        ImportError: without orbax-checkpoint.
        CheckpointError: if the path exists and is neither an orbax folder nor an empty folder.
        FileError: if the folder cannot be written, as far as that can be known in advance.
    """
    _orbax()
    place = Path(os.path.realpath(folder))
    _check_replaceable(place)
    try:
        check_writable(place.with_name(f".{place.name}"))
    except FileError as error:
        raise writing_error(folder, OSError(error.errno, error.strerror)) from error


def _orbax() -> Any:
    """Import orbax-checkpoint, which only this format needs."""
    try:
        return importlib.import_module("orbax.checkpoint")
    except ImportError as error:
        raise ImportError("checkpoints in folders need orbax-checkpoint; pip install 'supremum[orbax]'") from error


def _check_replaceable(folder: Path) -> None:
    if folder.is_dir() and ((folder / _MARK).is_file() or not any(folder.iterdir())):
        return
    if folder.exists():
        there = "a folder of other files" if folder.is_dir() else "not a folder"
        raise CheckpointError(f"{folder} is {there} and is not replaced; give another path for the orbax folder")


def _stored(name: Any, value: Any) -> tuple[Row, Any]:
    """Return the record of an array, and the array as it is stored."""
    if len(arrays_record.checked_name(name).encode()) > _LONGEST_NAME:
        raise ArgumentError(f"the name {shown(name[:40])}... is too long for orbax; use at most {_LONGEST_NAME} bytes")
    row, array, held = arrays_record.described(name, value)
    if isinstance(array, jax.Array) and jax.process_count() > 1 and not is_spread(array):
        array = np.asarray(array)  # every process has the same array, and the first writes it
    if not _is_native(held):
        array, row = _by_part(array, _as_bytes), row | {"bytes": True}
    return row | {"sum32": checksum(array)}, array


def _is_native(held: Format) -> bool:
    """Whether tensorstore, with which orbax writes, has a dtype for a format."""
    try:
        importlib.import_module("tensorstore").dtype(held.name)
    except ValueError:
        return False
    return True


def _by_part(array: Any, change: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Apply a function to a NumPy array, or to each part of a JAX array on the part's own device."""
    if not isinstance(array, jax.Array):
        return change(array)
    parts = [
        jax.device_put(keep_64_bits(change(np.array(part.data))), part.device) for part in array.addressable_shards
    ]
    return jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts)


def _as_bytes(array: np.ndarray) -> np.ndarray:
    # Items of several bytes, which are complex numbers that only NumPy has, get a new axis of bytes.
    return array.view(_BYTES) if array.itemsize == 1 else array[..., None].view(_BYTES)


@contextmanager
def _reading(folder: Path) -> Generator[None]:
    with reading(folder, "orbax cannot read it"):
        try:
            yield
        except FileNotFoundError as error:
            raise damaged(folder, f"a part of it is missing ({error})") from error


def _record(folder: Path, place: Path) -> tuple[dict[str, Row], dict[str, str]]:
    """Return the validated record of a folder: a row for each array, and the metadata."""
    stored = _orbax().metadata.get_step_metadata(place).custom_metadata or {}
    if ENTRY not in stored:
        raise CheckpointError(
            f"{folder} has no supremum record. If another program wrote it, orbax.checkpoint.PyTreeCheckpointer()"
            f".restore({shown(str(folder))}) reads it, and supremum.nn.load_variables(layer, arrays) loads its arrays; "
            f"otherwise it is damaged: {REMEDY}"
        )
    return arrays_record.read_record(folder, stored[ENTRY])


def _read(place: Path, chosen: Mapping[str, tuple[Row, Any]]) -> dict[str, Any]:
    """Read arrays of the folder in the form in which they are stored."""
    orbax = _orbax()
    restore_args = {
        name: _restore_args(orbax, row, like) for name, (row, like) in chosen.items() if 0 not in row["shape"]
    }
    if not restore_args:
        return {}
    wanted = orbax.args.PyTreeRestore(
        item=dict.fromkeys(restore_args, 0), restore_args=restore_args, partial_restore=True
    )
    return orbax.PyTreeCheckpointHandler().restore(place, args=wanted)


def _restore_args(orbax: Any, row: Row, like: Any) -> Any:
    spec = tuple(row["shape"]), as_format(row["format"]).dtype
    if like is not None and "key" not in row and spec == (like.shape, like.dtype):
        return orbax.ArrayRestoreArgs(sharding=like.sharding)
    return orbax.RestoreArgs(restore_type=np.ndarray)


def _checked(folder: Path, name: str, row: Row, array: Any) -> Any:
    """Return the array that was saved, after checking it against its record."""
    held = as_format(row["format"])
    shape = tuple(row["shape"])
    stored = _BYTES if "bytes" in row else held.dtype
    stored_shape = (*shape, held.dtype.itemsize) if "bytes" in row and held.dtype.itemsize > 1 else shape
    array = np.empty(stored_shape, stored) if array is None else array
    arrays_record.check_stored(folder, name, row, array, (stored, stored_shape), "sum32", checksum)
    if "bytes" in row:
        array = _by_part(array, lambda part: part.view(held.dtype).reshape(part.shape[: len(shape)]))
    return arrays_record.restored(folder, name, row, array)
