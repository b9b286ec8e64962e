"""Cache the keys and values of decoded positions in an immutable value."""

from __future__ import annotations

from contextlib import suppress
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

    The cache keeps the dtype it was made with and stores everything in it, whatever layers compute in. Policies do not
    cast it (Flax FLIP, default dtypes, "Autoregressive decoding cache"). `MultiHeadAttention.init_cache` uses the dtype
    of the keys, so nothing is rounded, unless it is given a different dtype.

    Attributes:
        keys: shape (batch, max_length, heads, head_dim).
        values: shape (batch, max_length, heads, value_dim).
        length: the number of positions in use, int32; a scalar, or shape (batch,) if sequences differ.
    """

    keys: jax.Array
    values: jax.Array
    length: jax.Array

    keeps_dtype: ClassVar[bool] = True

    @classmethod
    def empty(
        cls, batch: int, max_length: int, heads: int, head_dim: int, *, dtype: Any, value_dim: int | None = None
    ) -> KeyValueCache:
        """Make an empty cache.

        Args:
            batch: the number of sequences.
            max_length: the number of positions that fit.
            heads: the number of heads of keys and values.
            head_dim: the dimension of keys.
            dtype: the floating dtype of keys and values.
            value_dim: the dimension of values; None for `head_dim`.

        Raises:
            ArgumentError: for a dtype that is not floating, or a `max_length` below 1; a `ValueError`.

        >>> cache = KeyValueCache.empty(2, 16, 4, 8, dtype="bfloat16")
        >>> cache.keys.shape, cache.keys.dtype, int(cache.length)
        ((2, 16, 4, 8), dtype(bfloat16), 0)
        """
        row = as_format(dtype)
        if row.category != "float":
            raise ArgumentError(f"the dtype of a cache must be floating-point, got {row}; use dtype='float32'")
        if max_length < 1:
            raise ArgumentError(f"max_length must be at least 1, got {max_length}")
        shape = batch, max_length, heads
        return cls(
            keys=jnp.zeros((*shape, head_dim), row.dtype),
            values=jnp.zeros((*shape, head_dim if value_dim is None else value_dim), row.dtype),
            length=jnp.zeros((), "int32"),
        )

    @property
    def max_length(self) -> int:
        """The number of positions that fit."""
        return self.keys.shape[1]

    @property
    def is_overfull(self) -> jax.Array:
        """Whether more positions were appended than fit, a boolean of the shape of `length`.

        The content of an overfull cache is wrong, and layers return NaN for it.
        """
        return self.length > self.max_length

    def append(self, keys: jax.Array, values: jax.Array) -> KeyValueCache:
        """Append positions at the end.

        Args:
            keys: shape (batch, n, heads, head_dim), of any floating dtype; they are stored in the cache's dtype.
            values: shape (batch, n, heads, value_dim).

        Returns:
            A new cache. Under `jax.jit` the length is not known, and the result `is_overfull` if positions did not fit.

        Raises:
            ArgumentError: for shapes that do not match, or more positions than fit if the length is known; a
                `ValueError`.
            OperandError: for keys or values that are not floating; a `TypeError`.
        """
        for name, array, stored in (("keys", keys, self.keys), ("values", values, self.values)):
            if array.ndim != 4 or (array.shape[0], *array.shape[2:]) != (stored.shape[0], *stored.shape[2:]):
                raise ArgumentError(
                    f"{name} of shape {array.shape} do not fit a cache with {name} of shape {stored.shape}"
                )
            if as_format(array.dtype).category != "float":
                raise OperandError(f"{name} must be floating-point, got {array.dtype}; use {name}.astype('float32')")
        if keys.shape[1] != values.shape[1]:
            raise ArgumentError(
                f"keys and values must have the same length, got {keys.shape[1]} keys and {values.shape[1]} values"
            )
        length = self.length + keys.shape[1]
        _check_room(length, keys.shape[1], self.max_length)
        return KeyValueCache(_written(self.keys, keys, self.length), _written(self.values, values, self.length), length)

    def mask(self, queries: int) -> jax.Array:
        """The mask that lets the last positions attend to themselves and all earlier ones.

        Args:
            queries: the number of last positions in the cache.

        Returns:
            Booleans of shape (queries, max_length), or (batch, 1, queries, max_length) if lengths differ.
        """
        ends = self.length[..., None, None, None] if self.length.ndim else self.length
        last = ends - queries + jnp.arange(queries)[:, None]
        return jnp.arange(self.max_length) <= last


def _written(stored: jax.Array, new: jax.Array, begin: jax.Array) -> jax.Array:
    new = new.astype(stored.dtype)
    if begin.ndim == 0:
        return lax.dynamic_update_slice_in_dim(stored, new, begin, axis=1)
    return jax.vmap(partial(lax.dynamic_update_slice_in_dim, axis=0))(stored, new, begin)


def _check_room(length: jax.Array, added: int, max_length: int) -> None:
    longest = added
    with suppress(jax.errors.ConcretizationTypeError):
        longest = int(jnp.max(length, initial=added))
    if longest > max_length:
        raise ArgumentError(
            f"{added} more positions make {longest}, but the cache has room for {max_length}; "
            "make a cache with a larger max_length"
        )
