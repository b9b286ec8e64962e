"""Named arrays of every number format in one safetensors file that is whole or refused.

The arrays are tensors of the file under their own names, so that any reader of safetensors finds them; what NumPy and
safetensors have no common dtype for is stored as bytes. One entry of the file's metadata, `"supremum"`, is JSON with
the format, shape and checksum of each, and a checksum of its own: a flipped bit is found wherever it is.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from supremum.errors import ArgumentError, OperandError, UnknownDtypeError
from supremum.files import whole_file
from supremum.formats import Format, Kind, as_format
from supremum.training.checkpoint_errors import CheckpointError, reading_error, writing_error

VERSION = 1
"""Of the file format; files of a later one are refused."""

Row: TypeAlias = dict[str, Any]

_ENTRY = "supremum"
_BYTES = as_format("uint8").dtype
# A header of safetensors has an entry of this name that is no tensor.
_RESERVED = "__metadata__"


def save_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays to a file; it replaces the one that is there at once, or not at all.

    The bytes are put together in memory, are on the disk before the file has its name, and hold no pickle.

    Args:
        path: where; the folder is made if need be, `~` is the home folder.
        arrays: by name: arrays of JAX or NumPy of any shape and any of `supremum.formats`, and keys of `jax.random`.
        metadata: texts by name, to be given back with them.

    Raises:
        OperandError: for what is no such array, or not a text.
        ArgumentError: for an array that was donated, or a name that UTF-8 has no bytes for.
        CheckpointFileError: where it cannot be written; an `OSError`. What was there is as it was.

    >>> import tempfile, ml_dtypes
    >>> path = tempfile.mkdtemp() + "/a.safetensors"
    >>> save_arrays(path, {"a/b": np.array([0.5, 2], ml_dtypes.float8_e5m2)}, {"by": "hand"})
    >>> load_arrays(path)
    ({'a/b': array([0.5, 2], dtype='float8_e5m2')}, {'by': 'hand'})
    """
    file = Path(path).expanduser()
    rows: dict[str, Row] = {}
    stored: dict[str, np.ndarray] = {}
    for name, value in arrays.items():
        rows[name], stored[_stored_name(name)] = _stored(name, value)
    content = {"arrays": rows, "metadata": _texts(metadata or {})}
    entry = {"version": VERSION, "crc32": _checksum(content), "content": content}
    try:
        data = save(stored, {_ENTRY: json.dumps(entry)})
    except SafetensorError as error:
        raise ArgumentError(f"{file}: safetensors cannot write this: {error}") from error
    try:
        if file.exists() and not file.is_file():
            raise CheckpointError(f"{file} is {_what_is_there(file)}: give the path of a file")
        with whole_file(file) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise writing_error(file, error) from error


def load_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Read what `save_arrays` wrote, bit for bit, or nothing.

    Args:
        path: the file.

    Returns:
        The arrays by name, in the order they were given in, as arrays of NumPy, keys of `jax.random` as such; and the
        metadata.

    Raises:
        MissingCheckpointError: where there is no file; a `FileNotFoundError`.
        CheckpointFileError: where it cannot be read; an `OSError`.
        CheckpointError: for a file that is damaged, cut short, empty, of another program, or of a newer version.
    """
    file = Path(path).expanduser()
    try:
        if file.stat().st_size == 0 or not file.is_file():
            raise CheckpointError(f"{file} is {_what_is_there(file)}, and no checkpoint: give the path of one")
        with file.open("rb"), safe_open(file, "numpy") as tensors:
            content = _content(file, tensors.metadata() or {})
            return _arrays(file, tensors, content), content["metadata"]
    except CheckpointError:
        raise
    except SafetensorError as error:
        raise CheckpointError(f"{file} is no whole safetensors file ({error}): {_REMEDY}") from error
    except OSError as error:
        raise reading_error(file, error) from error
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise _damaged(file, f"its record makes no sense ({type(error).__name__}: {error})") from error


_REMEDY = "load another checkpoint, or save this one again"


def _what_is_there(file: Path) -> str:
    return "empty" if file.is_file() else "a folder" if file.is_dir() else "no regular file"


def _stored(name: str, value: Any) -> tuple[Row, np.ndarray]:
    """What is said of an array, and what is stored of it."""
    row: Row = {}
    if isinstance(value, jax.Array):
        _check_readable(name, value)
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            row["key"] = _implementation(name, value)
            value = jax.random.key_data(value)
    elif not isinstance(value, (np.ndarray, np.generic)) or isinstance(value, np.ma.MaskedArray):
        raise OperandError(
            f"{name!r} is a {type(value).__name__}, which has no dtype to be stored in: give an array of NumPy or JAX, "
            "such as np.asarray(x, 'float32')"
        )
    try:
        held = as_format(value.dtype)
    except UnknownDtypeError as error:
        raise OperandError(f"{name!r} is an array of {value.dtype}, which is no number format: leave it out") from error
    # NumPy's own dtype of the format has this machine's byte order.
    array = np.asarray(value, held.dtype, order="C")
    row |= {"format": held.name, "shape": list(array.shape)}
    if not _is_native(held):
        array = array.reshape(-1).view(_BYTES)
    return row | {"crc32": zlib.crc32(array.data)}, array


def _is_native(held: Format) -> bool:
    """Whether every version of safetensors has a dtype for it that NumPy has as well."""
    return held.is_builtin and held.kind is not Kind.COMPLEX


def _check_readable(name: str, value: jax.Array) -> None:
    if isinstance(value, Tracer):
        raise OperandError(
            f"{name!r} is being traced and has no value yet: save outside of jax.jit, what the function returns"
        )
    if value.is_deleted():
        raise ArgumentError(
            f"{name!r} was donated to a jitted function and is gone: save what that function returned in its place"
        )


def _implementation(name: str, key: jax.Array) -> str:
    implementation = jax.random.key_impl(key)
    if isinstance(implementation, str):
        return implementation
    raise OperandError(
        f"{name!r} is a key of an implementation without a name, {implementation}: jax.random.key_data({name}) can be "
        "saved"
    )


def _stored_name(name: Any) -> str:
    """The name in the file: the name itself, unless it could be taken for the metadata."""
    if not isinstance(name, str):
        raise OperandError(f"{name!r} is no name for an array: give a str, such as {str(name)!r}")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{name!r} is no name for an array: UTF-8 has no bytes for it: give another") from error
    # One more underscore, for names that have more already as well: no two names become one.
    return f"{name}_" if name.rstrip("_") == _RESERVED.rstrip("_") and name.startswith(_RESERVED) else name


def _texts(metadata: Mapping[Any, Any]) -> dict[str, str]:
    for name, text in metadata.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise OperandError(f"metadata {name!r} is {text!r}, and has to be a text with a name: json.dumps makes one")
    return dict(metadata)


def _checksum(content: Any) -> int:
    return zlib.crc32(json.dumps(content).encode())


def _content(file: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """What the file says about its arrays, once it is known to be ours and as it was written."""
    if _ENTRY not in metadata:
        raise CheckpointError(
            f"{file} was not written by supremum, but by another program: safetensors.numpy.load_file({str(file)!r}) "
            "reads it, and supremum.nn.load_variables(layer, arrays) takes its arrays"
        )
    entry = json.loads(metadata[_ENTRY])
    if entry["version"] > VERSION:
        raise CheckpointError(
            f"{file} has format version {entry['version']}, and this supremum reads up to {VERSION}: pip install -U "
            "supremum"
        )
    if entry["version"] < 1 or entry["crc32"] != _checksum(entry["content"]):
        raise _damaged(file, "its record does not have its checksum")
    return entry["content"]


def _arrays(file: Path, tensors: Any, content: dict[str, Any]) -> dict[str, Any]:
    rows: dict[str, Row] = content["arrays"]
    if sorted(tensors.keys()) != sorted(map(_stored_name, rows)):
        raise _damaged(file, "it has other arrays than its record says")
    return {name: _restored(file, name, tensors, row) for name, row in rows.items()}


def _restored(file: Path, name: str, tensors: Any, row: Row) -> Any:
    held = as_format(row["format"])
    shape = tuple(row["shape"])
    is_native = _is_native(held)
    expected = (held.dtype, shape) if is_native else (_BYTES, (math.prod(shape) * held.dtype.itemsize,))
    array = tensors.get_tensor(_stored_name(name))
    if (array.dtype, array.shape) != expected:
        raise _damaged(file, f"{name!r} is stored as {array.dtype}{list(array.shape)}, and not as the record says")
    if zlib.crc32(array.data) != row["crc32"]:
        raise _damaged(file, f"the bytes of {name!r} do not have their checksum")
    if not is_native:
        array = array.view(held.dtype).reshape(shape)
    return jax.random.wrap_key_data(array, impl=row["key"]) if "key" in row else array


def _damaged(file: Path, what: str) -> CheckpointError:
    return CheckpointError(f"{file} is damaged: {what}: {_REMEDY}")
