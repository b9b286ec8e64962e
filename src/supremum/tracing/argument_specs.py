"""Arguments of a function, described in a text."""

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
    """What a function is to be traced with.

    Args:
        text: arrays as JAX prints them, `f32[8,128]` or `float32[8,128]`, and numbers, with commas between.

    Raises:
        ArgumentError: for what is none of these.
        UnknownDtypeError: for a dtype nobody knows.

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
        raise ArgumentError(f"{shown(text)} is neither an array, as f32[8,128] is, nor a number")
    name, shape = found.groups()
    short = _SHORT.fullmatch(name)
    dtype = as_format(name if short is None else _KINDS[short.group(1)] + short.group(2)).dtype
    lengths = [length.strip() for length in shape.split(",") if length.strip()]
    if any(len(length) > _DIGITS for length in lengths):
        raise ArgumentError(f"{shown(text)} is too long: a length has at most {_DIGITS} digits")
    return jax.ShapeDtypeStruct(tuple(map(int, lengths)), dtype)
