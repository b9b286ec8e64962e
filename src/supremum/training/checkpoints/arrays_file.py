"""Save and load named arrays of every number format in one safetensors file.

The arrays are tensors of the file under their own names, so any safetensors reader finds them. Formats without a dtype
in both NumPy and safetensors are stored as bytes. One entry of the file's metadata, `"supremum"`, is JSON with the
format, shape and checksum of each array, and a checksum of itself. Loading therefore detects any flipped bit.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from supremum.atomic_files import whole_file, writing_error
from supremum.errors import ArgumentError, shown
from supremum.formats import Format, Kind, as_format
from supremum.training.checkpoints import arrays_record
from supremum.training.checkpoints.arrays_record import ENTRY, Row
from supremum.training.checkpoints.errors import REMEDY, CheckpointError, CheckpointFileError, damaged, reading
from supremum.training.checkpoints.process_barrier import is_first, is_spread, together

_BYTES = as_format("uint8").dtype
# The safetensors header has an entry of this name that is not a tensor.
_RESERVED = "__metadata__"


def save_file(file: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write arrays to a file, as `save_arrays` does.

    Args:
        file: where to write.
        arrays: arrays by name. If several processes share some, the first process writes the file, and all wait for
            it.
        metadata: strings by name.

    Raises:
        ArgumentError: for an array whose parts are in different processes.
    """
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
        rows[name], stored[_stored_name(name)] = _stored(name, value)
    try:
        data = save(stored, {ENTRY: arrays_record.written_record(rows, metadata)})
    except SafetensorError as error:
        raise ArgumentError(f"{file}: safetensors cannot write this: {error}") from error
    try:
        with whole_file(file) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise writing_error(file, error, CheckpointFileError) from error


def load_file(file: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Read what `save_file` wrote, as `load_arrays` does.

    Args:
        file: the file.
    """
    with _opened(file) as (tensors, rows, metadata):
        if sorted(tensors.keys()) != sorted(map(_stored_name, rows)):
            raise damaged(file, "its arrays differ from those in its record")
        return {name: _restored(file, name, tensors, row) for name, row in rows.items()}, metadata


def texts_of_file(file: Path) -> dict[str, str]:
    """Read the metadata of what `save_file` wrote, without its arrays.

    Args:
        file: the file.
    """
    with _opened(file) as (_, _, metadata):
        return metadata


@contextmanager
def _opened(file: Path) -> Generator[tuple[Any, dict[str, Row], dict[str, str]]]:
    """Yield the tensors of a file and its validated record; errors in the block become errors about the file."""
    with reading(file, "its record is invalid"):
        if file.stat().st_size == 0 or not file.is_file():
            what = "empty" if file.is_file() else "a folder" if file.is_dir() else "not a regular file"
            raise CheckpointError(f"{file} is {what}, not a checkpoint; give the path of a checkpoint")
        try:
            with file.open("rb"), safe_open(file, "numpy") as tensors:
                yield tensors, *_record(file, tensors.metadata() or {})
        except SafetensorError as error:
            raise CheckpointError(f"{file} is not a complete safetensors file ({error}); {REMEDY}") from error


def _stored(name: str, value: Any) -> tuple[Row, np.ndarray]:
    """Return the record of an array, and the array as it is stored."""
    row, found, held = arrays_record.described(name, value)
    array = np.asarray(found, held.dtype, order="C")
    if not _is_native(held):
        array = array.reshape(-1).view(_BYTES)
    return row | {"crc32": _crc32(array)}, array


def _crc32(array: np.ndarray) -> int:
    return zlib.crc32(array.data)


def _is_native(held: Format) -> bool:
    """Whether NumPy and every version of safetensors have a dtype for a format."""
    return held.is_builtin and held.kind is not Kind.COMPLEX


def _stored_name(name: Any) -> str:
    """Return the name of an array in the file, which differs only if it would clash with the metadata entry."""
    name = arrays_record.checked_name(name)
    # Names that already end in more underscores get one more too, so that no two names coincide.
    return f"{name}_" if name.rstrip("_") == _RESERVED.rstrip("_") and name.startswith(_RESERVED) else name


def _record(file: Path, metadata: Mapping[str, str]) -> tuple[dict[str, Row], dict[str, str]]:
    """Return the validated record of a file: a row for each array, and the metadata."""
    if ENTRY not in metadata:
        raise CheckpointError(
            f"{file} was written by another program, not by supremum; safetensors.numpy.load_file("
            f"{shown(str(file))}) reads it, and supremum.nn.load_variables(layer, arrays) loads its arrays"
        )
    return arrays_record.read_record(file, metadata[ENTRY])


def _restored(file: Path, name: str, tensors: Any, row: Row) -> Any:
    held = as_format(row["format"])
    shape = tuple(row["shape"])
    is_native = _is_native(held)
    expected = (held.dtype, shape) if is_native else (_BYTES, (math.prod(shape) * held.dtype.itemsize,))
    array = tensors.get_tensor(_stored_name(name))
    arrays_record.check_stored(file, name, row, array, expected, "crc32", _crc32)
    return arrays_record.restored(file, name, row, array if is_native else array.view(held.dtype).reshape(shape))
