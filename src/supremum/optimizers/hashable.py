"""Hashable stand-ins for settings."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

import numpy as np


class Identity:
    """A hashable reference to an object; it compares by identity and keeps the object alive."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)


def hashable(value: Any) -> Hashable:
    """Return a hashable stand-in, compared by value for plain data and by identity for unhashable objects.

    >>> hashable([1, {"a": 2.0}]) == hashable([1, {"a": 2.0}]), hashable(1) == hashable(True)
    (True, False)
    """
    kind = type(value)
    if isinstance(value, (list, tuple)):
        return (kind, tuple(map(hashable, cast("list[Any]", value))))
    if isinstance(value, dict):
        return (kind, tuple((key, hashable(item)) for key, item in cast("dict[Any, Any]", value).items()))
    if isinstance(value, np.ndarray):
        return (kind, value.dtype.str, value.shape, value.tobytes())
    try:
        hash(value)
    except TypeError:
        return Identity(value)
    return (kind, value)
