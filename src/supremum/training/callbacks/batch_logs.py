"""Logs of a batch that are fetched from the device when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from supremum.errors import ArgumentError


class BatchLogs(Mapping[str, float]):
    """Numbers by name, fetched once, on first use.

    Args:
        fetch: returns the numbers.
    """

    def __init__(self, fetch: Callable[[], dict[str, float]]) -> None:
        self._fetch: Callable[[], dict[str, float]] | None = fetch
        self._fetched: dict[str, float] | None = None

    def expire(self) -> None:
        """Stop fetching, because the next step reuses the memory."""
        self._fetch = None

    def _numbers(self) -> dict[str, float]:
        if self._fetched is None:
            if self._fetch is None:
                raise ArgumentError(
                    "these logs belong to a batch that has ended; read them in the callback, or keep dict(logs)"
                )
            self._fetched = self._fetch()
        return self._fetched

    def __getitem__(self, name: str) -> float:
        return self._numbers()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers())

    def __len__(self) -> int:
        return len(self._numbers())

    def __repr__(self) -> str:
        return repr(self._numbers())
