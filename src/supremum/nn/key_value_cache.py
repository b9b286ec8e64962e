"""The keys and values of what was decoded so far, as a value that each step makes anew."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax

from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format


@partial(jax.tree_util.register_dataclass, data_fields=["keys", "values", "length"], meta_fields=[])
@dataclass(frozen=True)
class KeyValueCache:
    """Keys and values of the positions so far, in arrays with room for more.

    It keeps the dtype it was made with: what is put in is stored in that, whatever layers compute in, and policies
    leave it alone (spec/flax-flip-default-dtypes.md, "Autoregressive decoding cache"). In the dtype of the keys, which
    is what `MultiHeadAttention.init_cache` makes, nothing is rounded; another one is asked for by name.

    Attributes:
        keys: shape (batch, max_length, heads, head_dim).
        values: shape (batch, max_length, heads, value_dim).
        length: how many positions are in use, int32: a scalar, or shape (batch,) where they differ.
    """

    keys: jax.Array
    values: jax.Array
    length: jax.Array

    keeps_dtype: ClassVar[bool] = True

    @classmethod
    def empty(
        cls, batch: int, max_length: int, heads: int, head_dim: int, *, dtype: Any, value_dim: int | None = None
    ) -> KeyValueCache:
        """A cache with nothing in it.

        Args:
            batch: how many sequences.
            max_length: how many positions there is room for.
            heads: of keys and values.
            head_dim: of keys.
            dtype: floating, of keys and values.
            value_dim: of values; None for `head_dim`.

        Raises:
            ArgumentError: for a dtype that is not floating, or a length without room; a `ValueError`.

        >>> cache = KeyValueCache.empty(2, 16, 4, 8, dtype="bfloat16")
        >>> cache.keys.shape, cache.keys.dtype, int(cache.length)
        ((2, 16, 4, 8), dtype(bfloat16), 0)
        """
        row = as_format(dtype)
        if row.category != "float":
            raise ArgumentError(f"a cache is floating, as keys and values are, not {row}: give dtype='float32'")
        if max_length < 1:
            raise ArgumentError(f"max_length is how many positions there is room for, 1 or more, not {max_length}")
        shape = batch, max_length, heads
        return cls(
            keys=jnp.zeros((*shape, head_dim), row.dtype),
            values=jnp.zeros((*shape, head_dim if value_dim is None else value_dim), row.dtype),
            length=jnp.zeros((), "int32"),
        )

    @property
    def max_length(self) -> int:
        """How many positions there is room for."""
        return self.keys.shape[1]

    @property
    def is_overfull(self) -> jax.Array:
        """Whether more was appended than there is room for, a boolean of the shape of `length`.

        What is in the cache then is not what was put in, and layers make NaN of it.
        """
        return self.length > self.max_length

    def append(self, keys: jax.Array, values: jax.Array) -> KeyValueCache:
        """The cache with more positions at its end.

        Args:
            keys: shape (batch, n, heads, head_dim), of any floating dtype; stored in the cache's own.
            values: shape (batch, n, heads, value_dim).

        Returns:
            Another cache. Under `jax.jit`, where the length is not known, one that there was no room for `is_overfull`.

        Raises:
            ArgumentError: for shapes that do not fit or, where the length is known, more than there is room for; a
                `ValueError`.
            OperandError: for keys or values that are not floating; a `TypeError`.
        """
        for name, array, stored in (("keys", keys, self.keys), ("values", values, self.values)):
            if array.ndim != 4 or (array.shape[0], *array.shape[2:]) != (stored.shape[0], *stored.shape[2:]):
                raise ArgumentError(f"{name} of shape {array.shape} do not fit a cache of {name} {stored.shape}")
            if as_format(array.dtype).category != "float":
                raise OperandError(f"a cache takes floating {name}, not {array.dtype}: give {name}.astype('float32')")
        if keys.shape[1] != values.shape[1]:
            raise ArgumentError(f"there is one value for each key, not {values.shape[1]} for {keys.shape[1]}")
        length = self.length + keys.shape[1]
        _refuse_overfull(length, keys.shape[1], self.max_length)
        return KeyValueCache(_written(self.keys, keys, self.length), _written(self.values, values, self.length), length)

    def mask(self, queries: int) -> jax.Array:
        """The mask with which the last positions attend to themselves and all before.

        Args:
            queries: how many of them, of those that are in the cache.

        Returns:
            Booleans of shape (queries, max_length), or (batch, 1, queries, max_length) where lengths differ.
        """
        ends = self.length[..., None, None, None] if self.length.ndim else self.length
        last = ends - queries + jnp.arange(queries)[:, None]
        return jnp.arange(self.max_length) <= last


def _written(stored: jax.Array, new: jax.Array, begin: jax.Array) -> jax.Array:
    new = new.astype(stored.dtype)
    if begin.ndim == 0:
        return lax.dynamic_update_slice_in_dim(stored, new, begin, axis=1)
    return jax.vmap(partial(lax.dynamic_update_slice_in_dim, axis=0))(stored, new, begin)


def _refuse_overfull(length: jax.Array, added: int, max_length: int) -> None:
    if added > max_length:
        raise ArgumentError(f"{added} positions do not fit a cache of {max_length}: make one with a larger max_length")
    try:
        longest = int(jnp.max(length, initial=0))
    except jax.errors.ConcretizationTypeError:
        return
    if longest > max_length:
        raise ArgumentError(
            f"{added} more positions make {longest}, and the cache has room for {max_length}: "
            "make one with a larger max_length"
        )
