"""What all reports share: a title, and the report as plain data and JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any


class Report(ABC):
    """A report on a program, with a title and as plain data.

    >>> class Sizes(Report):
    ...     title = "2 sizes"
    ...
    ...     def to_dict(self):
    ...         return {"sizes": [3, 4]}
    >>> Sizes(), Sizes().to_json(None)
    (Sizes(2 sizes), '{"sizes": [3, 4]}')
    """

    __slots__ = ()

    @property
    @abstractmethod
    def title(self) -> str:
        """What was found, in one line."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON."""

    def to_json(self, indent: int | None = 2) -> str:
        """The report as JSON.

        Args:
            indent: as for `json.dumps`.
        """
        return json.dumps(self.to_dict(), indent=indent)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title})"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "cast"), plural(2, "cast")
    ('1 cast', '2 casts')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
