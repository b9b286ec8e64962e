"""Functions of arrays under the rules in force; see `supremum.arrays.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from supremum.arrays import Array
from supremum.arrays import ops as _ops
from supremum.public_names import public_names

__all__ = sorted(_ops.FUNCTIONS)  # pyright: ignore[reportUnsupportedDunderAll] (they are made from a table)

globals().update(_ops.FUNCTIONS)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., Array]: ...


def __dir__() -> list[str]:
    return public_names(globals())
