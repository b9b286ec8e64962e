"""The record of a checkpoint: formats, shapes and checksums of its arrays, and its metadata.

The record is JSON with a version and its own checksum.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from supremum.errors import ArgumentError, OperandError, UnknownDtypeError, shortened, shown
from supremum.formats import Format, Kind, as_format, format_names
from supremum.training.checkpoints.errors import CheckpointError, damaged

VERSION = 1
"""The version of the record; loading rejects later versions."""

ENTRY = "supremum"
"""The name that a record is stored under."""

BYTES = as_format("uint8").dtype
"""The dtype of bytes, as which a format is stored that the storage has no dtype for."""

_WORD = as_format("uint32")

Row: TypeAlias = dict[str, Any]
"""The record of an array: `"format"`, `"shape"`, for keys the implementation as `"key"`, and entries of the storage."""


def described(name: str, value: Any) -> tuple[Row, jax.Array | np.ndarray, Format]:
    """Return the record of an array, the array itself (for keys, their data), and the format of its numbers.

    Args:
        name: the name of the array, for errors.
        value: a JAX or NumPy array, or `jax.random` keys.

    Raises:
        OperandError: for anything else.
        ArgumentError: for an array that was donated.
    """
    row: Row = {}
    if isinstance(value, jax.Array):
        _check_readable(name, value)
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            row["key"] = _implementation(name, value)
            value = jax.random.key_data(value)
    elif not isinstance(value, (np.ndarray, np.generic)) or isinstance(value, np.ma.MaskedArray):
        raise OperandError(
            f"{shown(name)} must be a NumPy or JAX array, got {type(value).__name__}; use np.asarray(x, 'float32')"
        )
    try:
        held = as_format(value.dtype)
    except UnknownDtypeError as error:
        raise OperandError(
            f"{shown(name)} must be an array of numbers, got dtype {value.dtype}; leave it out"
        ) from error
    if not isinstance(value, jax.Array):
        # NumPy's own dtype of the format has this machine's byte order.
        value = np.asarray(value, held.dtype, order="C")
        if _spare_bits(value, held).any():
            value = (value.view(np.uint8) & _mask(held)).view(held.dtype)
    return row | {"format": held.name, "shape": list(value.shape)}, value, held


def written_record(rows: Mapping[str, Row], metadata: Mapping[Any, Any]) -> str:
    """Write the record as a string.

    Args:
        rows: the record of each array by name, in the order in which loading returns them.
        metadata: strings by name.

    Raises:
        OperandError: for metadata that are not strings.
    """
    for name, text in metadata.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise OperandError(
                f"metadata must map str to str, got {shown(name)}: {shown(text)}; use json.dumps for other values"
            )
    content = {"arrays": rows, "metadata": dict(metadata)}
    return json.dumps({"version": VERSION, "crc32": _checksum(content), "content": content})


def read_record(path: Path, text: str) -> tuple[dict[str, Row], dict[str, str]]:
    """Return the arguments that `written_record` was given, after checking the record.

    Args:
        path: the checkpoint, for errors.
        text: the record.

    Raises:
        CheckpointError: for a record that is damaged, or of a newer version.
    """
    entry = parsed(path, text, "record")
    if not isinstance(entry, dict) or type(entry.get("version")) is not int:
        raise damaged(path, "its record has no version")
    if entry["version"] > VERSION:
        raise CheckpointError(
            f"{path} has format version {shown(entry['version'])}, but this supremum reads versions up to {VERSION}; "
            "pip install -U supremum"
        )
    content: Any = entry.get("content")
    try:
        is_whole = entry["version"] > 0 and entry.get("crc32") == _checksum(content)
    except RecursionError:
        is_whole = False
    if not is_whole:
        raise damaged(path, "its record does not match its checksum")
    validate(path, "its record", content, _RECORD_ENTRIES, _RECORD_ENTRIES)
    for name, row in content["arrays"].items():
        validate(path, f"its record of {shown(name)}", row, ARRAY_ENTRIES, ("format", "shape"))
    return content["arrays"], content["metadata"]


def parsed(path: Path, text: str, what: str) -> Any:
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
        raise damaged(path, f"its {what} is not JSON ({type(error).__name__}: {shortened(str(error))})") from error


def is_count(value: Any) -> bool:
    """Whether a value is an integer of at least 0, and not a bool."""
    return type(value) is int and value >= 0


Schema: TypeAlias = Mapping[str, Callable[[Any], bool]]
"""The entries of a JSON object, and a check for each."""

ARRAY_ENTRIES: Schema = {
    "format": lambda value: isinstance(value, str) and value in format_names(),
    "shape": lambda value: isinstance(value, list) and all(_is_length(each) for each in cast("list[Any]", value)),
    "key": lambda value: isinstance(value, str),
    "crc32": is_count,
    "sum32": is_count,
    "bytes": lambda value: value is True,
}
"""The entries of the record of an array; `format` and `shape` are required."""


_RECORD_ENTRIES: Schema = {
    "arrays": lambda value: isinstance(value, dict),
    "metadata": lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
}


def validate(path: Path, what: str, found: Any, schema: Schema, required: Iterable[str]) -> None:
    """Raise if an object of a checkpoint does not match its schema.

    Args:
        path: the checkpoint.
        what: what the object is, for errors.
        found: the object.
        schema: the entries it may have.
        required: the entries it must have.

    Raises:
        CheckpointError: if it is not an object, lacks an entry, or has one that is invalid or unknown.
    """
    if not isinstance(found, dict):
        raise damaged(path, f"{what} must be a JSON object, got {shown(found)}")
    entries = cast("dict[str, Any]", found)
    for name in required:
        if name not in entries:
            raise damaged(path, f"{what} has no {name}")
    for name, value in entries.items():
        if name not in schema or not schema[name](value):
            raise damaged(path, f"{what} has an invalid {shown(name)}: {shown(value)}")


def _is_length(value: Any) -> bool:
    return is_count(value) and value < 2**63


def check_stored(
    path: Path, name: str, row: Row, array: Any, expected: tuple[Any, ...], entry: str, checksum: Callable[[Any], int]
) -> None:
    """Raise if an array that was read differs from the one that was written.

    Args:
        path: the checkpoint.
        name: the name of the array.
        row: the record of the array.
        array: the array that was read.
        expected: the dtype and the shape in which it is stored.
        entry: the checksum that the row has, `"crc32"` or `"sum32"`.
        checksum: the function that computes it from the array.

    Raises:
        CheckpointError: if dtype, shape or checksum differ.
    """
    if (array.dtype, array.shape) != expected:
        raise damaged(
            path, f"{shown(name)} is stored as {array.dtype}{list(array.shape)}, which differs from its record"
        )
    if checksum(array) != row[entry]:
        raise damaged(path, f"the bytes of {shown(name)} do not match their checksum")


def restored(path: Path, name: str, row: Row, array: Any) -> Any:
    """Return the array, or, if its row records keys, the keys made from it.

    Args:
        path: the checkpoint, for errors.
        name: the name of the array.
        row: the record of the array.
        array: the array that was read.

    Raises:
        CheckpointError: for bytes that are not a number of the format, and for data that are not a valid key.
    """
    if isinstance(array, np.ndarray) and _spare_bits(array, as_format(row["format"])).any():
        raise damaged(path, f"{shown(name)} has bytes that are not valid {row['format']}")
    if "key" not in row:
        return array
    try:
        return jax.random.wrap_key_data(jnp.asarray(array), impl=row["key"])
    except (TypeError, ValueError) as error:
        raise damaged(
            path, f"{shown(name)} does not hold keys of {shown(row['key'])} ({shortened(str(error))})"
        ) from error


def _spare_bits(array: np.ndarray, held: Format) -> np.ndarray:
    """Return the bits of each byte that its format does not use; they are 0 unless another program wrote them."""
    return array.view(np.uint8) & ~_mask(held) if held.bits < 8 else np.zeros(0, np.uint8)


def _mask(held: Format) -> np.uint8:
    return np.uint8((1 << held.bits) - 1)


def is_spread(value: Any) -> bool:
    """Whether a value is a JAX array with parts or copies in other processes."""
    return isinstance(value, jax.Array) and not isinstance(value, Tracer) and not value.is_fully_addressable


def checked_name(name: Any) -> str:
    """Return the name of an array after checking it.

    Raises:
        OperandError: for a name that is not a string.
        ArgumentError: for a name that UTF-8 cannot encode.
    """
    if not isinstance(name, str):
        raise OperandError(f"the name of an array must be a str, got {shown(name)}; use {shown(str(name))}")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(f"the name of an array must be valid UTF-8, got {shown(name)}; use another name") from error
    return name


def _check_readable(name: str, value: jax.Array) -> None:
    if isinstance(value, Tracer):
        raise OperandError(
            f"{shown(name)} is being traced and has no value yet; return it from the function, and save the "
            "result outside of jax.jit"
        )
    if value.is_deleted():
        raise ArgumentError(
            f"{shown(name)} was donated to a jitted function, so its values are gone; save what that function returned"
        )


def _implementation(name: str, key: jax.Array) -> str:
    implementation = jax.random.key_impl(key)
    if isinstance(implementation, str):
        return implementation
    raise OperandError(
        f"{shown(name)} is a key of an implementation without a name, {implementation}; save "
        f"jax.random.key_data({name}) instead"
    )


def _checksum(content: Any) -> int:
    return zlib.crc32(json.dumps(content).encode())


def checksum(array: jax.Array | np.ndarray) -> int:
    """Sum the 32-bit words of an array modulo 2**32, each multiplied by an odd number that its position determines.

    Each device sums its own part of a sharded array, and only the sums are exchanged. A single flipped bit always
    changes the sum, because an odd number times a power of two below 2**32 is not 0 modulo 2**32; other damage goes
    undetected about once in 2**32. The numbers are the positions passed through the finaliser of MurmurHash3 (Austin
    Appleby, fmix32).

    Args:
        array: a NumPy array, or a JAX array with any sharding, for which every process must make the call.

    >>> array = np.arange(6, dtype="float32")
    >>> (
    ...     checksum(array) == checksum(jnp.asarray(array)),
    ...     checksum(array) == checksum(array[::-1]),
    ... )
    (True, False)
    """
    if not isinstance(array, np.ndarray):
        return int(_sum_of_words(array))
    held, size = as_format(array.dtype), min(array.itemsize, _WORD.dtype.itemsize)
    words = np.ascontiguousarray(array).reshape(-1).view(f"u{size}")
    if held.bits < 8 * size:  # bits that a format does not use have no meaning, and not every library preserves them
        words = words & ((1 << held.bits) - 1)
    return int(_weighted_sum(jnp.asarray(words.astype(_WORD.dtype))))


@jax.jit
def _sum_of_words(array: jax.Array) -> jax.Array:
    held = as_format(array.dtype)
    if held.kind is Kind.COMPLEX:
        array = jnp.stack([array.real, array.imag], axis=-1)
        held = as_format(array.dtype)
    if held.category == "bool":
        return _weighted_sum(array)
    words = jax.lax.bitcast_convert_type(array, as_format(f"uint{min(held.bits, _WORD.bits)}").dtype)
    return _weighted_sum(words)


@jax.jit
def _weighted_sum(words: jax.Array) -> jax.Array:
    words = words.astype(_WORD.dtype)
    place = jnp.zeros((), _WORD.dtype)
    for axis in range(words.ndim):
        stride = math.prod(words.shape[axis + 1 :]) % 2**_WORD.bits
        place += jax.lax.broadcasted_iota(_WORD.dtype, words.shape, axis) * np.uint32(stride)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        place = (place ^ (place >> shift)) * np.uint32(factor)
    return jnp.sum(words * (place ^ (place >> 16) | 1), dtype=_WORD.dtype)
