"""Values of which each device holds a piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax

from supremum.formats import DType


class Shard(NamedTuple):
    """One device's piece of a variable's value, laid over the variable in the place of the whole.

    Who reads the variable has the pieces put together, each cast first, so that no more bytes travel than the dtype
    that is read has.

    Args:
        local: the piece.
        shape: of the whole.
        gather: gives the whole, in a dtype, of the piece; runs in `jax.shard_map`.
    """

    local: jax.Array
    shape: tuple[int, ...]
    gather: Callable[[jax.Array, DType], jax.Array]

    @property
    def dtype(self) -> DType:
        """The dtype it is stored in."""
        return self.local.dtype

    def whole(self, dtype: DType) -> jax.Array:
        """All pieces together.

        Args:
            dtype: what they are cast to first.
        """
        return self.gather(self.local, dtype)
