"""What a checkpoint says about its arrays, whichever format it has: formats, shapes, checksums, and texts beside them.

It is kept as JSON with a version, and with a checksum of its own.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from supremum.errors import ArgumentError, OperandError, UnknownDtypeError
from supremum.formats import Format, as_format
from supremum.training.checkpoint_errors import CheckpointError

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
        OperandError: for what is no such array.
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
            f"{name!r} is a {type(value).__name__}, which has no dtype to be stored in: give an array of NumPy or JAX, "
            "such as np.asarray(x, 'float32')"
        )
    try:
        held = as_format(value.dtype)
    except UnknownDtypeError as error:
        raise OperandError(f"{name!r} is an array of {value.dtype}, which is no number format: leave it out") from error
    if not isinstance(value, jax.Array):
        # NumPy's own dtype of the format has this machine's byte order.
        value = np.asarray(value, held.dtype, order="C")
    return row | {"format": held.name, "shape": list(value.shape)}, value, held


def written_record(rows: Mapping[str, Row], metadata: Mapping[Any, Any]) -> str:
    """The record as a text.

    Args:
        rows: what is said of each array, in the order that loading gives them back in.
        metadata: texts by name.

    Raises:
        OperandError: for metadata that are no texts.
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
        KeyError, TypeError, ValueError: for what makes no sense.
    """
    entry = json.loads(text)
    if entry["version"] > VERSION:
        raise CheckpointError(
            f"{path} has format version {entry['version']}, and this supremum reads up to {VERSION}: pip install -U "
            "supremum"
        )
    if entry["version"] < 1 or entry["crc32"] != _checksum(entry["content"]):
        raise damaged(path, "its record does not have its checksum")
    content = entry["content"]
    return content["arrays"], content["metadata"]


REMEDY = "load another checkpoint, or save this one again"
"""What helps where a checkpoint is damaged."""


def damaged(path: Path, what: str) -> CheckpointError:
    """The error for a damaged checkpoint.

    Args:
        path: the checkpoint.
        what: what is wrong with it.
    """
    return CheckpointError(f"{path} is damaged: {what}: {REMEDY}")


def as_key(row: Row, array: Any) -> Any:
    """The array, or the keys that its row says it is the data of."""
    return jax.random.wrap_key_data(array, impl=row["key"]) if "key" in row else array


def checked_name(name: Any) -> str:
    """The name of an array, if it is one.

    Raises:
        OperandError: for what is no text.
        ArgumentError: for a text that UTF-8 has no bytes for.
    """
    if not isinstance(name, str):
        raise OperandError(f"{name!r} is no name for an array: give a str, such as {str(name)!r}")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{name!r} is no name for an array: UTF-8 has no bytes for it: give another") from error
    return name


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


def _texts(metadata: Mapping[Any, Any]) -> dict[str, str]:
    for name, text in metadata.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise OperandError(f"metadata {name!r} is {text!r}, and has to be a text with a name: json.dumps makes one")
    return dict(metadata)


def _checksum(content: Any) -> int:
    return zlib.crc32(json.dumps(content).encode())
