"""Functions of arrays under the rules in force; see `supremum.arrays.ops`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from supremum.arrays import ops as _ops

__all__ = sorted(_ops.FUNCTIONS)  # pyright: ignore[reportUnsupportedDunderAll] (they are made from a table)

globals().update(_ops.FUNCTIONS)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
