"""Save and load named arrays of every number format, in one safetensors file or in a folder of orbax-checkpoint.

The arrays are tensors of the file under their own names, so any safetensors reader finds them, and
`orbax.checkpoint.PyTreeCheckpointer().restore(folder)` finds those of a folder. Formats without a dtype in the storage
are stored as bytes. One entry of the metadata, `"supremum"`, is JSON with the format, shape and checksum of each array,
and a checksum of itself. Loading therefore detects any flipped bit. Each process writes its own parts to a folder.
"""

from __future__ import annotations

import importlib
import math
import os
import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from supremum.argument_checks import chosen, mapping
from supremum.atomic_files import as_path, check_writable, whole_file, writing_error
from supremum.errors import ArgumentError, FileError, shown
from supremum.extras import require
from supremum.formats import Format, Kind, as_format
from supremum.mixed_precision import keep_64_bits
from supremum.training.checkpoints import arrays_record
from supremum.training.checkpoints.arrays_record import BYTES, ENTRY, Row, checksum, is_spread
from supremum.training.checkpoints.atomic_directories import is_first, readable, together, whole_folder
from supremum.training.checkpoints.errors import REMEDY, CheckpointError, CheckpointFileError, damaged, reading

# The safetensors header has an entry of this name that is not a tensor.
_RESERVED = "__metadata__"
_FILE, _FOLDER = "safetensors", "orbax"
# The keys of orbax's database have at most 65,535 bytes, including the names of parts.
_LONGEST_NAME = 60_000
# The file that orbax puts into every folder of arrays.
_MARK = "_METADATA"

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
    write = _save_folder if checked_format(format) == _FOLDER else _save_file
    named = mapping("arrays", arrays, "{'kernel': kernel}")
    write(as_path(path), named, {} if metadata is None else mapping("metadata", metadata, "{'by': 'hand'}"))


def checked_format(format: str | None) -> str:  # noqa: A002
    """Return the name of a checkpoint format after checking it; `"safetensors"` for None.

    Raises:
        UnknownNameError: for an unknown format.
    """
    return _FILE if format is None else chosen("format", format, (_FILE, _FOLDER))


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
        MissingPackageError: for a folder without orbax-checkpoint.

    >>> import tempfile
    >>> import ml_dtypes
    >>> path = tempfile.mkdtemp() + "/arrays.safetensors"
    >>> save_arrays(path, {"w": np.ones(2, ml_dtypes.bfloat16)}, {"step": "7"})
    >>> arrays, metadata = load_arrays(path)
    >>> arrays["w"].dtype, metadata
    (dtype(bfloat16), {'step': '7'})
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
        return _load_folder(place, choose)
    with _opened(place) as (tensors, rows, metadata):
        if sorted(tensors.keys()) != sorted(map(_stored_name, rows)):
            raise damaged(place, "its arrays differ from those in its record")
        arrays = {name: _restored_from_file(place, name, tensors, row) for name, row in rows.items()}
    return {name: arrays[name] for name in choose(tuple(arrays), metadata)}, metadata


def load_texts(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read only the metadata of what `save_arrays` wrote, which is fast.

    Args:
        path: the file or folder.

    Raises:
        CheckpointError: as for `load_arrays`, except for damage to the arrays themselves.
    """
    place = as_path(path)
    if _is_folder(place):
        with _reading_folder(place):
            return _record_of_folder(place, readable(place))[1]
    with _opened(place) as (_, _, metadata):
        return metadata


def check_savable(path: Path, format: str) -> None:  # noqa: A002
    """Raise early what `save_arrays` would raise for a path; nothing is created, changed or removed.

    Args:
        path: the file or folder to be written.
        format: the format.

    Raises:
        MissingPackageError: for a folder without orbax-checkpoint.
        CheckpointError: for a folder, if the path exists and is neither an orbax folder nor an empty folder.
        FileError: if the path cannot be written, as far as that can be known in advance.
    """
    if format != _FOLDER:
        return check_writable(path)
    _orbax()
    place = Path(os.path.realpath(path))
    _check_replaceable(place)
    try:
        check_writable(place.with_name(f".{place.name}"))
    except FileError as error:
        raise writing_error(path, OSError(error.errno, error.strerror)) from error


def _is_folder(place: Path) -> bool:
    with reading(place, "it has no path"):
        return readable(place).is_dir()


def _save_file(file: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write arrays to a file; if several processes share some, the first process writes it, and all wait for it."""
    for name, value in arrays.items():
        if is_spread(value) and not value.is_fully_replicated:
            raise ArgumentError(
                f"{shown(name)} is spread over several processes, so one process cannot write it to a file; "
                'use format="orbax", with which each process writes its own part'
            )
    shared = any(map(is_spread, arrays.values()))
    with together() if shared else nullcontext():
        if is_first() or not shared:
            _write(file, arrays, metadata)


def _write(file: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    rows: dict[str, Row] = {}
    stored: dict[str, np.ndarray] = {}
    for name, value in arrays.items():
        rows[name], stored[_stored_name(name)] = _stored_in_file(name, value)
    try:
        data = save(stored, {ENTRY: arrays_record.written_record(rows, metadata)})
        with whole_file(file) as temporary:
            temporary.write_bytes(data)
    except SafetensorError as error:
        raise ArgumentError(f"{file}: safetensors cannot write this: {error}") from error
    except OSError as error:
        raise writing_error(file, error, CheckpointFileError) from error


@contextmanager
def _opened(file: Path) -> Generator[tuple[Any, dict[str, Row], dict[str, str]]]:
    """Yield the tensors of a file and its validated record; errors in the block become errors about the file."""
    with reading(file, "its record is invalid"):
        if file.stat().st_size == 0 or not file.is_file():
            what = "empty" if file.is_file() else "a folder" if file.is_dir() else "not a regular file"
            raise CheckpointError(f"{file} is {what}, not a checkpoint; give the path of a checkpoint")
        try:
            with file.open("rb"), safe_open(file, "numpy") as tensors:
                metadata = tensors.metadata() or {}
                if ENTRY not in metadata:
                    raise CheckpointError(
                        f"{file} was written by another program, not by supremum; safetensors.numpy.load_file("
                        f"{shown(str(file))}) reads it, and supremum.nn.load_variables(layer, arrays) loads its arrays"
                    )
                yield tensors, *arrays_record.read_record(file, metadata[ENTRY])
        except SafetensorError as error:
            raise CheckpointError(f"{file} is not a complete safetensors file ({error}); {REMEDY}") from error


def _stored_in_file(name: str, value: Any) -> tuple[Row, np.ndarray]:
    """Return the record of an array, and the array as it is stored."""
    row, found, held = arrays_record.described(name, value)
    array = np.asarray(found, held.dtype, order="C")
    if not _is_native_to_file(held):
        array = array.reshape(-1).view(BYTES)
    return row | {"crc32": _crc32(array)}, array


def _crc32(array: np.ndarray) -> int:
    return zlib.crc32(array.data)


def _is_native_to_file(held: Format) -> bool:
    """Whether NumPy and every version of safetensors have a dtype for a format."""
    return held.is_builtin and held.kind is not Kind.COMPLEX


def _stored_name(name: Any) -> str:
    """Return the name of an array in the file, which differs only if it would clash with the metadata entry."""
    name = arrays_record.checked_name(name)
    # Names that already end in more underscores get one more too, so that no two names coincide.
    return f"{name}_" if name.rstrip("_") == _RESERVED.rstrip("_") and name.startswith(_RESERVED) else name


def _restored_from_file(file: Path, name: str, tensors: Any, row: Row) -> Any:
    held = as_format(row["format"])
    shape = tuple(row["shape"])
    is_native = _is_native_to_file(held)
    expected = (held.dtype, shape) if is_native else (BYTES, (math.prod(shape) * held.dtype.itemsize,))
    array = tensors.get_tensor(_stored_name(name))
    arrays_record.check_stored(file, name, row, array, expected, "crc32", _crc32)
    return arrays_record.restored(file, name, row, array if is_native else array.view(held.dtype).reshape(shape))


def _save_folder(folder: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
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
        rows[name], array = _stored_in_folder(name, value)
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


def _load_folder(folder: Path, choose: Choice) -> tuple[dict[str, Any], dict[str, str]]:
    """Read what `_save_folder` wrote, as `load_chosen` does. Every process must make the call.

    Args:
        folder: the folder.
        choose: selects the arrays, each with an array to place it like.
    """
    with together(), _reading_folder(folder):
        place = readable(folder)
        if not (place / _MARK).is_file():
            raise CheckpointError(f"{folder} is a folder, not a checkpoint; give the path of a checkpoint")
        rows, metadata = _record_of_folder(folder, place)
        chosen = choose(tuple(rows), metadata)
        found = _read_folder(place, {name: (rows[name], like) for name, like in chosen.items()})
    with together(), _reading_folder(folder):
        return {name: _restored_from_folder(folder, name, rows[name], found.get(name)) for name in chosen}, metadata


def _orbax() -> Any:
    """Import orbax-checkpoint, which only this format needs."""
    require("A checkpoint in a folder", "orbax.checkpoint")
    return importlib.import_module("orbax.checkpoint")


def _check_replaceable(folder: Path) -> None:
    if folder.is_dir() and ((folder / _MARK).is_file() or not any(folder.iterdir())):
        return
    if folder.exists():
        there = "a folder of other files" if folder.is_dir() else "not a folder"
        raise CheckpointError(f"{folder} is {there} and is not replaced; give another path for the orbax folder")


def _stored_in_folder(name: Any, value: Any) -> tuple[Row, Any]:
    """Return the record of an array, and the array as it is stored."""
    if len(arrays_record.checked_name(name).encode()) > _LONGEST_NAME:
        raise ArgumentError(f"the name {shown(name[:40])}... is too long for orbax; use at most {_LONGEST_NAME} bytes")
    row, array, held = arrays_record.described(name, value)
    if isinstance(array, jax.Array) and jax.process_count() > 1 and not is_spread(array):
        array = np.asarray(array)  # every process has the same array, and the first writes it
    if not _is_native_to_folder(held):
        array, row = _by_part(array, _as_bytes), row | {"bytes": True}
    return row | {"sum32": checksum(array)}, array


def _is_native_to_folder(held: Format) -> bool:
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
    return array.view(BYTES) if array.itemsize == 1 else array[..., None].view(BYTES)


@contextmanager
def _reading_folder(folder: Path) -> Generator[None]:
    with reading(folder, "orbax cannot read it"):
        try:
            yield
        except FileNotFoundError as error:
            raise damaged(folder, f"a part of it is missing ({error})") from error


def _record_of_folder(folder: Path, place: Path) -> tuple[dict[str, Row], dict[str, str]]:
    """Return the validated record of a folder: a row for each array, and the metadata."""
    stored = _orbax().metadata.get_step_metadata(place).custom_metadata or {}
    if ENTRY not in stored:
        raise CheckpointError(
            f"{folder} has no supremum record. If another program wrote it, orbax.checkpoint.PyTreeCheckpointer()"
            f".restore({shown(str(folder))}) reads it, and supremum.nn.load_variables(layer, arrays) loads its arrays; "
            f"otherwise it is damaged: {REMEDY}"
        )
    return arrays_record.read_record(folder, stored[ENTRY])


def _read_folder(place: Path, chosen: Mapping[str, tuple[Row, Any]]) -> dict[str, Any]:
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


def _restored_from_folder(folder: Path, name: str, row: Row, array: Any) -> Any:
    """Return the array that was saved, after checking it against its record."""
    held = as_format(row["format"])
    shape = tuple(row["shape"])
    stored = BYTES if "bytes" in row else held.dtype
    stored_shape = (*shape, held.dtype.itemsize) if "bytes" in row and held.dtype.itemsize > 1 else shape
    array = np.empty(stored_shape, stored) if array is None else array
    arrays_record.check_stored(folder, name, row, array, (stored, stored_shape), "sum32", checksum)
    if "bytes" in row:
        array = _by_part(array, lambda part: part.view(held.dtype).reshape(part.shape[: len(shape)]))
    return arrays_record.restored(folder, name, row, array)
