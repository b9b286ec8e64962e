"""Parser for `--args`, which describes the arguments of a function."""

from __future__ import annotations

import re
from typing import Any

import jax

from supremum.errors import ArgumentError, shown
from supremum.formats import as_format

_KINDS = {"bf": "bfloat", "f": "float", "i": "int", "s": "int", "u": "uint", "c": "complex"}
_SHORT = re.compile(r"(bf|f|i|s|u|c)(\d.*)")
_ARRAY = re.compile(r"([A-Za-z]\w*)\[([\d\s,]*)\]")
# XLA counts the elements of an array in 64 bits.
_DIGITS = 18
_SEPARATOR = re.compile(r",(?![^\[]*\])")


def parse_arguments(text: str) -> tuple[Any, ...]:
    """Parse the arguments to trace a function with.

    Args:
        text: arrays as JAX prints them, `f32[8,128]` or `float32[8,128]`, and numbers, separated by commas.

    Raises:
        ArgumentError: for anything else.
        UnknownDtypeError: for an unknown dtype.

    >>> parse_arguments("bf16[8,128], f32[], 0.5")
    (ShapeDtypeStruct(shape=(8, 128), dtype=bfloat16), ShapeDtypeStruct(shape=(), dtype=float32), 0.5)
    """
    parts = [part.strip() for part in _SEPARATOR.split(text)]
    return tuple(_parse(part) for part in parts if part)


def _parse(text: str) -> Any:
    found = _ARRAY.fullmatch(text)
    if found is None:
        for number in (int, float, complex):
            try:
                return number(text)
            except ValueError:
                continue
        raise ArgumentError(f"Arguments must be arrays such as f32[8,128] or numbers, got {shown(text)}.")
    name, shape = found.groups()
    short = _SHORT.fullmatch(name)
    dtype = as_format(name if short is None else _KINDS[short.group(1)] + short.group(2)).dtype
    lengths = [length.strip() for length in shape.split(",") if length.strip()]
    if any(len(length) > _DIGITS for length in lengths):
        raise ArgumentError(f"The lengths of an array must have at most {_DIGITS} digits, got {shown(text)}.")
    return jax.ShapeDtypeStruct(tuple(map(int, lengths)), dtype)
