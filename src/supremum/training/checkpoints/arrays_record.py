"""The record of a checkpoint: formats, shapes and checksums of its arrays, and its metadata.

It is JSON with a version and a checksum of its own.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from supremum.errors import ArgumentError, OperandError, UnknownDtypeError, shortened, shown
from supremum.formats import Format, as_format, format_names
from supremum.training.checkpoints.errors import CheckpointError, damaged

VERSION = 1
"""Of the record; those of a later one are refused."""

ENTRY = "supremum"
"""The name that a record is stored under."""

Row: TypeAlias = dict[str, Any]
"""What is said of an array: its `"format"` and `"shape"`, a key's implementation as `"key"`, what the storage adds."""


def described(name: str, value: Any) -> tuple[Row, jax.Array | np.ndarray, Format]:
    """What is said of an array, the array itself, of a key its data, and the format of its numbers.

    Args:
        name: its name, for errors.
        value: an array of JAX or NumPy, or keys of `jax.random`.

    Raises:
        OperandError: for anything else.
        ArgumentError: for one that was donated.
    """
    row: Row = {}
    if isinstance(value, jax.Array):
        _check_readable(name, value)
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            row["key"] = _implementation(name, value)
            value = jax.random.key_data(value)
    elif not isinstance(value, (np.ndarray, np.generic)) or isinstance(value, np.ma.MaskedArray):
        raise OperandError(
            f"{shown(name)} must be an array of NumPy or JAX, got {type(value).__name__}; use np.asarray(x, 'float32')"
        )
    try:
        held = as_format(value.dtype)
    except UnknownDtypeError as error:
        raise OperandError(
            f"{shown(name)} must be an array of numbers, got one of {value.dtype}; leave it out"
        ) from error
    if not isinstance(value, jax.Array):
        # NumPy's own dtype of the format has this machine's byte order.
        value = np.asarray(value, held.dtype, order="C")
        if _spare_bits(value, held).any():
            value = (value.view(np.uint8) & _mask(held)).view(held.dtype)
    return row | {"format": held.name, "shape": list(value.shape)}, value, held


def written_record(rows: Mapping[str, Row], metadata: Mapping[Any, Any]) -> str:
    """The record as a text.

    Args:
        rows: what is said of each array, in the order that loading gives them back in.
        metadata: texts by name.

    Raises:
        OperandError: for metadata that are not texts.
    """
    content = {"arrays": rows, "metadata": _texts(metadata)}
    return json.dumps({"version": VERSION, "crc32": _checksum(content), "content": content})


def read_record(path: Path, text: str) -> tuple[dict[str, Row], dict[str, str]]:
    """What `written_record` was given, once it is known to be as it was written.

    Args:
        path: where it is from, for errors.
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
    """What a text of JSON says.

    Args:
        path: where it is from, for errors.
        text: the text.
        what: what it is, for errors.

    Raises:
        CheckpointError: for a text that is not JSON, or nests too deeply.
    """
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(path, f"its {what} is not JSON ({type(error).__name__}: {shortened(str(error))})") from error


def is_count(value: Any) -> bool:
    """Whether a value is a whole number of at least 0, and no bool."""
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
"""What a record says of an array; `format` and `shape` are always there."""


_RECORD_ENTRIES: Schema = {
    "arrays": lambda value: isinstance(value, dict),
    "metadata": lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
}


def validate(path: Path, what: str, found: Any, schema: Schema, required: Iterable[str]) -> None:
    """Raise if an object of a checkpoint is not as its schema says.

    Args:
        path: the checkpoint.
        what: what the object is about.
        found: the object.
        schema: its entries.
        required: which of them must be there.

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
    """Raise if an array that was read is not the one that was written.

    Args:
        path: the checkpoint.
        name: of the array.
        row: what the record says of it.
        array: what was read.
        expected: the dtype and the shape that it is stored in.
        entry: which checksum the row has, `"crc32"` or `"sum32"`.
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
    """The array, or the keys that its row says it is the data of.

    Args:
        path: where it is from, for errors.
        name: its name there.
        row: what is said of it.
        array: what was read.

    Raises:
        CheckpointError: for bytes that no number of the format has, and for data of no key.
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
    """The bits of each byte that its format does not use; they are 0 unless another program wrote them."""
    return array.view(np.uint8) & ~_mask(held) if held.bits < 8 else np.zeros(0, np.uint8)


def _mask(held: Format) -> np.uint8:
    return np.uint8((1 << held.bits) - 1)


def checked_name(name: Any) -> str:
    """The name of an array, if it is one.

    Raises:
        OperandError: for anything but a text.
        ArgumentError: for a text that UTF-8 has no bytes for.
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


def _texts(metadata: Mapping[Any, Any]) -> dict[str, str]:
    for name, text in metadata.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise OperandError(
                f"metadata must map str to str, got {shown(name)}: {shown(text)}; use json.dumps for other values"
            )
    return dict(metadata)


def _checksum(content: Any) -> int:
    return zlib.crc32(json.dumps(content).encode())
