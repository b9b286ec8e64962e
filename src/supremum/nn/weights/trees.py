"""Trees of weights of other libraries: nested dicts, dicts by path and files, read into one dict and written again."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import DEEPEST
from supremum.arrays import asarray
from supremum.atomic_files import as_path, reading_error
from supremum.errors import ArgumentError, OperandError, UnknownDtypeError, shown
from supremum.extras import require
from supremum.file_content import file_content
from supremum.formats import as_format
from supremum.nn.weights.pieces import Array, Place

# PyTorch has the number of a recurrent layer, and its direction, at the end: `weight_ih_l0_reverse`.
_RECURRENT = re.compile(r"((?:weight|bias)_(?:ih|hh))_(l\d+(?:_reverse)?)")
_COLLECTIONS = {("params",), ("batch_stats",)}
# Random states, which are not weights.
_RANDOM_STATES = {"flax": "rngs", "nnx": "rngs", "keras": "seed_generator_state"}

# The dtype of a safetensors file whose name is not the short name here.
_SAFETENSORS = {"F8_E4M3": "float8_e4m3fn"}


def place_of(name: str, library: str) -> Place:
    """Split a name of another library into its parts.

    Args:
        name: the name of an array or a layer.
        library: the library.

    >>> (
    ...     place_of("encoder.weight_ih_l0", "torch"),
    ...     place_of("sequential/dense/kernel", "keras"),
    ... )
    (('encoder', 'l0', 'weight_ih'), ('sequential', 'dense', 'kernel'))
    """
    parts = [part for part in name.split("." if library == "torch" else "/") if part]
    if library == "torch" and parts and (match := _RECURRENT.fullmatch(parts[-1])):
        parts[-1:] = [match[2], match[1]]
    return tuple(parts)


def name_of(place: Place, library: str) -> str:
    """Join the parts of a name of another library, the inverse of `place_of`.

    >>> name_of(("encoder", "l0", "weight_ih"), "torch")
    'encoder.weight_ih_l0'
    """
    if library != "torch":
        return "/".join(place)
    *outer, last = place or ("",)
    if outer and _RECURRENT.fullmatch(f"{last}_{outer[-1]}"):
        last = f"{last}_{outer.pop()}"
    return ".".join((*outer, last))


def read_tree(values: object, library: str) -> dict[Place, Array]:
    """Read the arrays of another library.

    Args:
        values: a nested mapping of arrays, or the path of a safetensors file.
        library: the library.

    Returns:
        NumPy arrays, which may share memory with the given ones.

    Raises:
        OperandError: for values that are neither, or leaves that are not arrays of numbers; a `TypeError`.
        ArgumentError: for a file that is not in safetensors format; a `ValueError`.
        FileError: for a file that cannot be read; an `OSError`.
    """
    if isinstance(values, (str, os.PathLike)):
        values = _read_file(as_path(cast("str", values)))
    if not isinstance(values, Mapping):
        kinds = "a nested dict of arrays or the path of a safetensors file"
        raise OperandError(f"the {library} weights must be {kinds}, got {shown(values)}")
    arrays: dict[Place, Array] = {}
    for place, value in _leaves(cast("Mapping[Any, Any]", values), (), library):
        name = name_of(place, library)
        if place in arrays:
            raise ArgumentError(f"the {library} weights have {shown(name)} twice; leave one out")
        arrays[place] = _host_array(value, name)
    if library == "flax" and {("params",)} <= {place[:1] for place in arrays} <= _COLLECTIONS:
        return {place[1:]: array for place, array in arrays.items()}
    return arrays


def _leaves(values: Mapping[Any, Any], outer: Place, library: str) -> Iterator[tuple[Place, Any]]:
    if len(outer) > DEEPEST:
        raise OperandError(f"the {library} weights must be nested at most {DEEPEST} levels deep")
    for key, value in values.items():
        place = (*outer, *place_of(str(key), library))
        if isinstance(value, Mapping):
            yield from _leaves(cast("Mapping[Any, Any]", value), place, library)
        elif _RANDOM_STATES.get(library) not in place:
            yield place, value


def _host_array(value: Any, name: str) -> Array:
    """Convert to NumPy an array of NumPy or JAX, a tensor of PyTorch on any device, or a variable of Flax or Keras."""
    # Variables of Flax nnx, parameters of linen with axis names, and parameters of PyTorch on any device.
    for method in ("get_value", "unbox", "detach", "cpu"):
        bound: Callable[[], Any] | None = getattr(value, method, None)
        value = bound() if callable(bound) else value
    try:
        array = asarray(value, library="numpy").unwrap()
        as_format(array.dtype)
    except (TypeError, ValueError) as error:  # TypeError for random keys of JAX
        raise OperandError(f"{shown(name)} must be an array of numbers, got {shown(value)}") from error
    return array


def _read_file(file: Path) -> dict[str, Array]:
    require("Reading a safetensors file", "safetensors")
    from safetensors import SafetensorError, deserialize

    try:
        content = deserialize(file_content(file))
    except OSError as error:
        raise reading_error(file, error) from error
    except SafetensorError as error:
        raise ArgumentError(
            f"{file} is not a complete safetensors file ({error}); for a file of torch.save give torch.load(file)"
        ) from error
    arrays: dict[str, Array] = {}
    for name, tensor in content:
        stored = tensor["dtype"]
        try:
            dtype = as_format(_SAFETENSORS.get(stored, stored.lower())).dtype
        except UnknownDtypeError as error:
            raise ArgumentError(f"{file}: {shown(name)} has dtype {stored}, which no variable can have") from error
        arrays[name] = np.frombuffer(tensor["data"], dtype).reshape(tensor["shape"])
    return arrays


def write_tree(arrays: Mapping[Place, Array], library: str) -> dict[str, Any]:
    """Write arrays in the tree of another library; the inverse of `read_tree`.

    Args:
        arrays: each array by its place, which begins with the collection for Flax linen.
        library: the library.

    Returns:
        For Flax nested dicts of JAX arrays; otherwise a dict by name, of tensors for PyTorch and NumPy arrays for
        Keras, which share memory with the given ones.

    Raises:
        MissingPackageError: if PyTorch is asked for and not installed.
    """
    if library in ("keras", "torch"):
        kind = "torch" if library == "torch" else "numpy"
        return {name_of(place, library): asarray(array, library=kind).unwrap() for place, array in arrays.items()}
    tree: dict[Any, Any] = {}
    for place, array in arrays.items():
        # The lists of an nnx module have integers for names.
        *outer, last = (int(part) if part.isdecimal() and library == "nnx" else part for part in place)
        inner = tree
        for key in outer:
            inner = inner.setdefault(key, {})
        inner[last] = jnp.array(array, array.dtype)
    return tree
