"""A dict that does not grow for ever."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["Bounded"]

K = TypeVar("K")
V = TypeVar("V")


class Bounded(dict[K, V]):
    """What was found out once, for keys of which there may be any number: when it is full it starts anew.

    Reading is that of a dict, which matters more here than which entries are kept.

    Args:
        most: how many entries it holds at most.

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
        """Keep an entry, after forgetting all others if there is no room for it."""
        if len(self) >= self._most and key not in self:
            self.clear()
        super().__setitem__(key, value)

    def setdefault(self, key: K, default: Any = None) -> Any:
        """The entry of a key, which is made if there is none; of two threads that make it both get the first one's."""
        if len(self) >= self._most and key not in self:
            self.clear()
        return super().setdefault(key, default)
