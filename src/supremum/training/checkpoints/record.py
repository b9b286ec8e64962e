"""The record of a checkpoint: the formats, shapes and checksums of its arrays, and its metadata.

The record is JSON after its own checksum.
"""

from __future__ import annotations

import importlib
import json
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.experimental import multihost_utils

from supremum.errors import ArgumentError, OperandError, UnknownDtypeError, listed, shortened, shown
from supremum.formats import Format, Kind, as_format, format_names
from supremum.mixed_precision import described
from supremum.training.checkpoints.errors import CheckpointError, damage_error

VERSION = 1
"""The version of the record; loading rejects other versions."""

ENTRY = "supremum"
"""The name that a record is stored under."""

_BYTES = as_format("uint8").dtype

Row: TypeAlias = dict[str, Any]
"""The record of an array: `"format"`, `"shape"`, `"checksum"`, and `"key"`, the implementation of keys, else None."""


def describe(name: str, value: jax.Array | np.ndarray[Any, Any], by_orbax: bool) -> tuple[Row, Any]:
    """Return the record of an array, and the array in the form in which it is stored.

    If the storage has no dtype for its format, it is stored as bytes, in one more axis.

    Args:
        name: the name of the array.
        value: a JAX or NumPy array, or `jax.random` keys.
        by_orbax: whether orbax stores the array, which must be a JAX array, or else a safetensors file.

    Raises:
        OperandError: for anything else, and for a name that is not a string.
        ArgumentError: for an array that was donated, or a name that UTF-8 cannot encode.
    """
    _check(name, value)
    key = None
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        key = jax.random.key_impl(value)
        if not isinstance(key, str):
            raise OperandError(f"{shown(name)} is a key of {key}, which has no name; save jax.random.key_data({name})")
        value = jax.random.key_data(value)
    try:
        row = as_format(value.dtype)
    except UnknownDtypeError as error:
        what = f"{shown(name)} must be an array of numbers, got dtype {value.dtype}"
        raise OperandError(f"{what}; leave it out") from error
    shape = value.shape
    if not by_orbax:
        # NumPy's own dtype of the format has this machine's byte order.
        value = _without_spare_bits(np.asarray(value, row.dtype, order="C"))
    if not _is_native(row, by_orbax):
        value = _by_part(value, (*shape, row.dtype.itemsize), lambda part: part[..., None].view(_BYTES))
    return {"format": row.name, "shape": list(shape), "key": key, "checksum": checksum(value)}, value


def restore(path: Path, name: str, row: Row, array: jax.Array | np.ndarray[Any, Any]) -> Any:
    """Return the array or the keys that `describe` took, after checking what was read.

    Args:
        path: the checkpoint, for errors.
        name: the name of the array.
        row: its record.
        array: the array that was read.

    Raises:
        CheckpointError: for an array that differs from its record, bytes that are not a number of the format, and data
            that are not a valid key.
    """
    stored, shape = as_format(row["format"]), tuple(row["shape"])
    if (array.dtype, array.shape) not in ((stored.dtype, shape), (_BYTES, (*shape, stored.dtype.itemsize))):
        raise damage_error(path, f"{shown(name)} is stored as {described(array)}, which differs from its record")
    if checksum(array) != row["checksum"]:
        raise damage_error(path, f"the bytes of {shown(name)} do not match their checksum")
    if array.shape != shape:
        array = _by_part(array, shape, lambda part: part.view(stored.dtype)[..., 0])
    if stored.bits < 8 and isinstance(array, np.ndarray) and array.tobytes() != _without_spare_bits(array).tobytes():
        raise damage_error(path, f"{shown(name)} has bytes that are not valid {stored}")
    if row["key"] is None:
        return array
    try:
        return jax.random.wrap_key_data(jnp.asarray(array), impl=row["key"])
    except (TypeError, ValueError) as error:
        what = f"{shown(name)} does not hold keys of {shown(row['key'])}"
        raise damage_error(path, f"{what} ({shortened(str(error))})") from error


def write_record(rows: Mapping[str, Row], metadata: Mapping[Any, Any], folder: str | None) -> str:
    """Write the record as a string.

    Args:
        rows: the record of each array by name, in the order in which loading returns them.
        metadata: strings by name.
        folder: the name of the folder with the arrays that orbax stores; None if there are none.

    Raises:
        OperandError: for metadata that are not strings.
    """
    for name, text in metadata.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            what = f"metadata must map str to str, got {shown(name)}: {shown(text)}"
            raise OperandError(f"{what}; use json.dumps for other values")
    return sign(json.dumps({"version": VERSION, "arrays": rows, "metadata": dict(metadata), "folder": folder}))


def read_record(path: Path, text: str) -> dict[str, Any]:
    """Return the arguments of `write_record` as `"arrays"`, `"metadata"` and `"folder"`, after checking the record.

    Args:
        path: the checkpoint, for errors.
        text: the record.

    Raises:
        CheckpointError: for a record that is damaged, or of a newer version.
    """
    _, _, content = text.partition(" ")
    if text != sign(content):
        raise damage_error(path, "its record does not match its checksum")
    record: Any = parse_json(path, content, "record")
    version: Any = record.get("version") if isinstance(record, dict) else None
    if is_count(version) and version > VERSION:
        what = f"{path} has format version {version}, but this supremum reads versions up to {VERSION}"
        raise CheckpointError(f"{what}; pip install -U supremum")
    validate(path, "its record", record, _RECORD_ENTRIES)
    for name, row in record["arrays"].items():
        validate(path, f"its record of {shown(name)}", row, _ROW_ENTRIES)
    return record


def sign(content: str) -> str:
    """Return a string after its checksum."""
    return f"{zlib.crc32(content.encode()):08x} {content}"


def parse_json(path: Path, text: str, what: str) -> Any:
    """Parse a JSON string.

    Args:
        path: the checkpoint, for errors.
        text: the string.
        what: what the string is, for errors.

    Raises:
        CheckpointError: for a string that is not JSON or is nested too deeply.
    """
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise damage_error(path, f"its {what} is not JSON ({type(error).__name__}: {shortened(str(error))})") from error


LARGEST_COUNT = 2**63 - 1
"""The largest step, and the largest dimension of an array."""


def is_count(value: object) -> bool:
    """Whether a value is an integer from 0 to `LARGEST_COUNT`, and not a bool."""
    return type(value) is int and 0 <= value <= LARGEST_COUNT


Schema: TypeAlias = Mapping[str, Callable[[Any], bool]]
"""The entries of a JSON object, and a check for each."""

_ROW_ENTRIES: Schema = {
    "format": lambda value: isinstance(value, str) and value in format_names(),
    "shape": lambda value: isinstance(value, list) and all(map(is_count, cast("list[Any]", value))),
    "key": lambda value: value is None or isinstance(value, str),
    "checksum": lambda value: type(value) is int,
}
_RECORD_ENTRIES: Schema = {
    "version": lambda value: value == VERSION and type(value) is int,
    "arrays": lambda value: isinstance(value, dict),
    "metadata": lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
    "folder": lambda value: (
        value is None or (isinstance(value, str) and re.fullmatch(r"arrays-\d+", value) is not None)
    ),
}


def validate(path: Path, what: str, data: object, schema: Schema) -> None:
    """Raise if an object of a checkpoint does not match its schema.

    Args:
        path: the checkpoint.
        what: what the object is, for errors.
        data: the object.
        schema: the entries it must have.

    Raises:
        CheckpointError: if it is not an object, lacks an entry, or has one that is invalid or unknown.
    """
    if not isinstance(data, dict) or data.keys() != schema.keys():
        raise damage_error(path, f"{what} must be a JSON object with {listed(schema)}, got {shown(data)}")
    for name, is_valid in schema.items():
        if not is_valid(data[name]):
            raise damage_error(path, f"{what} has an invalid {shown(name)}: {shown(data[name])}")


def _check(name: object, value: object) -> None:
    """Raise if an array cannot be saved under a name."""
    if not isinstance(name, str):
        raise OperandError(f"the name of an array must be a str, got {shown(name)}; use {shown(str(name))}")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(f"the name of an array must be valid UTF-8, got {shown(name)}; use another name") from error
    if isinstance(value, Tracer):
        fix = "return it from the function, and save the result outside of jax.jit"
        raise OperandError(f"{shown(name)} is being traced and has no value yet; {fix}")
    if not isinstance(value, (jax.Array, np.ndarray, np.generic)) or isinstance(value, np.ma.MaskedArray):
        what = f"{shown(name)} must be a NumPy or JAX array, got {type(value).__name__}"
        raise OperandError(f"{what}; use np.asarray(x, 'float32')")
    if isinstance(value, jax.Array) and value.is_deleted():
        what = f"{shown(name)} was donated to a jitted function, so its values are gone"
        raise ArgumentError(f"{what}; save what that function returned")


def _is_native(row: Format, by_orbax: bool) -> bool:
    """Whether the storage has a dtype for a format."""
    if by_orbax:
        return hasattr(importlib.import_module("tensorstore"), row.name)  # orbax writes with tensorstore
    return row.is_builtin and row.kind is not Kind.COMPLEX  # in every version of safetensors


def _by_part(array: Any, shape: tuple[int, ...], change: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Apply a function to a NumPy array, or to each part of a JAX array on the part's own device.

    Args:
        array: the array.
        shape: the shape of the whole result.
        change: the function, which keeps the axes that are split.
    """
    if not isinstance(array, jax.Array):
        return change(array)
    parts = [jax.device_put(change(np.asarray(part.data)), part.device) for part in array.addressable_shards]
    return jax.make_array_from_single_device_arrays(shape, array.sharding, parts)


def _without_spare_bits(array: np.ndarray) -> np.ndarray:
    """Return an array with 0 in the bits of each byte that its format does not use; they have no meaning."""
    bits = as_format(array.dtype).bits
    return array if bits >= 8 else np.asarray(array.view(_BYTES) & np.uint8((1 << bits) - 1)).view(array.dtype)


def is_spread(value: object) -> bool:
    """Whether a value is a JAX array with parts or copies in other processes."""
    return isinstance(value, jax.Array) and not isinstance(value, Tracer) and not value.is_fully_addressable


def checksum(array: jax.Array | np.ndarray) -> int:
    """Sum the words of an array modulo 2**64, each multiplied by a random odd number for its place along each axis.

    Each process sums its own part of a sharded array, and only the sums are exchanged. Words have at most 32 bits, so
    that a single flipped bit always changes the sum: an odd number times a power of two below 2**64 is not 0 modulo
    2**64. Other damage goes undetected about once in 2**32 if it changes only the top bits of words, else less often.

    Args:
        array: a NumPy array, or a JAX array with any sharding, for which every process must make the call.

    >>> array = np.arange(6, dtype="float32")
    >>> (
    ...     checksum(array) == checksum(jnp.asarray(array)),
    ...     checksum(array) == checksum(-array),
    ... )
    (True, False)
    """
    if isinstance(array, np.ndarray):
        return _sum_of_part(array, (slice(None),) * array.ndim)
    shards = [shard for shard in array.addressable_shards if shard.replica_id == 0]
    total = sum(_sum_of_part(np.asarray(shard.data), shard.index) for shard in shards) % 2**64
    if is_spread(array):
        halves = np.array(divmod(total, 2**32), np.uint32)  # JAX would narrow 64 bits
        total = sum(int(high) * 2**32 + int(low) for high, low in multihost_utils.process_allgather(halves)) % 2**64
    return total


def _sum_of_part(part: np.ndarray, index: tuple[slice, ...]) -> int:
    """Return the sum of a part of an array.

    Args:
        part: the part.
        index: where in the array it is.
    """
    if not part.size:
        return 0
    words = _without_spare_bits(np.asarray(part, order="C"))  # not every library preserves these bits
    words = words.view(f"u{part.itemsize}") if part.itemsize <= 4 else words[..., None].view("u4")
    starts = [place.start or 0 for place in index] + [0] * (words.ndim - part.ndim)
    for axis, start in reversed([*enumerate(starts)]):
        # The stream of numbers that a seed makes is the same in every version of NumPy.
        factors = np.random.PCG64(axis).advance(start).random_raw(words.shape[-1]) | np.uint64(1)
        words = np.einsum("...i,i", words, factors, dtype=np.uint64, casting="safe")
    return int(words)
