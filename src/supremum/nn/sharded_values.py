"""Values that are split across devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax

from supremum.formats import DType


class Shard(NamedTuple):
    """One device's piece of a variable's value, which replaces the whole value in a `functional_call`.

    Reading the variable gathers the pieces. Each piece is cast first, so the transfer has only the bytes of the dtype
    that is read.

    Args:
        local: the piece.
        shape: the shape of the whole value.
        gather: a function of the piece and a dtype that returns the whole value; it runs in `jax.shard_map`.
    """

    local: jax.Array
    shape: tuple[int, ...]
    gather: Callable[[jax.Array, DType], jax.Array]

    @property
    def dtype(self) -> DType:
        """The stored dtype."""
        return self.local.dtype

    def whole(self, dtype: DType) -> jax.Array:
        """Gather the whole value.

        Args:
            dtype: the dtype that the pieces are cast to first.
        """
        return self.gather(self.local, dtype)
