"""What the rows of reports say about the place of an operation in the source."""

from __future__ import annotations

from typing import Any

from supremum.jaxprs import Position, Site, operation_of
from supremum.tracing.expressions import Sources
from supremum.tracing.origins import CallOrigin, Origins


class RowFields:
    """Finds the source line of each operation of a program, as fields of the rows of reports."""

    def __init__(self) -> None:
        self._origins = Origins()
        self._sources = Sources()

    def origin(self, site: Site) -> CallOrigin:
        """Where an operation comes from."""
        return self._origins.of(site)

    def at(self, position: Position | None) -> dict[str, Any]:
        """The fields of a `SourceLine`.

        Args:
            position: the expression; None if it is unknown.
        """
        if position is None:
            return {"file": "", "line": 0, "expression": ""}
        return {"file": position.file, "line": position.line, "expression": self._sources.text(position)}

    def of(self, site: Site) -> dict[str, Any]:
        """The fields of an `OperationRow`.

        Args:
            site: the operation.
        """
        origin = self.origin(site)
        return {
            **self.at(origin.place),
            "scope": site.path,
            "primitive": operation_of(site.equation),
            "backward": origin.backward,
            "path": origin.path,
        }
