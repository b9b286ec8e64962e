"""A dict with a maximum size."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["Bounded"]

K = TypeVar("K")
V = TypeVar("V")


class Bounded(dict[K, V]):
    """A cache that is cleared when it is full.

    Reads are as fast as those of a dict, which matters more here than which entries survive.

    Args:
        most: the maximum number of entries.

    >>> squares = Bounded(2)
    >>> squares[2], squares[3], squares[4] = 4, 9, 16
    >>> squares
    {4: 16}
    """

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        """Store an entry; clear the cache first if it is full."""
        if len(self) >= self._most and key not in self:
            self.clear()
        super().__setitem__(key, value)

    def setdefault(self, key: K, default: object = None) -> Any:
        """Return the entry of a key, stored first if missing; if two threads store one, both get the first."""
        if len(self) >= self._most and key not in self:
            self.clear()
        value: Any = default
        return super().setdefault(key, value)
