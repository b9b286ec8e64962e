"""Checks of what is given: numbers, and the keys of what was saved."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any, cast

import jax
import numpy as np
from jax.core import Tracer

from supremum.errors import ArgumentError, UnknownNameError


def real_number(name: str, value: Any) -> float:
    """A number of any real type, 0-d arrays included, as a float; one too large for a float is infinite.

    Raises:
        TypeError: for what is no real number, bools included; the message names the argument.

    >>> real_number("scale", np.float16(2.0))
    2.0
    """
    number = _item(name, value)
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise TypeError(f"{name} is a number, not {value!r}")
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def whole_number(name: str, value: Any, smallest: int, largest: int) -> int:
    """An integer of any integer type within bounds, as an `int`.

    Raises:
        TypeError: for what is no integer, bools and floats included.
        ArgumentError: for one out of bounds; a `ValueError`.

    >>> whole_number("period", np.int8(3), 1, 10)
    3
    """
    number = _item(name, value)
    if isinstance(number, bool) or not isinstance(number, numbers.Integral):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    number = int(number)
    if not smallest <= number <= largest:
        # Python refuses to print integers of more than 4300 digits, and nobody wants to read 400.
        shown = number if number.bit_length() <= 256 else f"an integer of {number.bit_length()} bits"
        raise ArgumentError(f"{name} is from {smallest} to {largest}, not {shown}")
    return number


def _item(name: str, value: Any) -> Any:
    if isinstance(value, Tracer):
        raise TypeError(f"{name} has to be known before tracing, not {value}: give a Python number")
    return value.item() if isinstance(value, (np.ndarray, np.generic, jax.Array)) and value.ndim == 0 else value


def known_keys(what: str, given: Any, known: Iterable[str], required: Iterable[str]) -> dict[str, Any]:
    """A mapping from names, as a dict, with no key unknown and none missing.

    Args:
        what: what the mapping is, such as `"config of a policy"`.
        given: the mapping.
        known: every key it may have.
        required: those it must have.

    Raises:
        TypeError: for what is no mapping.
        UnknownNameError: for an unknown key, with the near ones.
        ArgumentError: for missing keys; like the last a `ValueError`.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"a {what} is a mapping, not {given!r}")
    entries = cast("dict[Any, Any]", dict(given))
    known = tuple(known)
    for key in entries:
        if key not in known:
            raise UnknownNameError(f"key of a {what}", key, known)
    missing = [key for key in required if key not in entries]
    if missing:
        raise ArgumentError(f"a {what} needs {' and '.join(map(repr, missing))}: this one has {list(entries)}")
    return entries
