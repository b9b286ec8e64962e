"""Attention masks: booleans that broadcast to (batch..., heads, queries, keys), True where a query attends."""

from __future__ import annotations

import functools
import operator
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from supremum.argument_checks import whole_number
from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format
from supremum.nn.functional.dtype_promotion import as_array
from supremum.nn.functional.shape_checks import MOST, check_shape
from supremum.typing import ArrayLike


def make_causal_mask(queries: int, keys: int | None = None, *, offset: int | jax.Array = 0) -> jax.Array:
    """The mask that lets query i attend to the keys 0 to i + offset.

    Args:
        queries: the number of queries.
        keys: the number of keys; None for the number of queries.
        offset: the number of keys before the first query; it may be traced.

    Returns:
        Booleans of shape (queries, keys).

    Raises:
        ArgumentError: for a negative length; a `ValueError`.

    >>> make_causal_mask(2, 3).astype(int)
    Array([[1, 0, 0],
           [1, 1, 0]], dtype=int32)
    """
    keys = queries if keys is None else keys
    for name, length in {"queries": queries, "keys": keys}.items():
        whole_number(name, length, 0, MOST)
    if isinstance(offset, Tracer):
        check_shape("offset", offset.shape, ())
    else:
        whole_number("offset", offset, -MOST, MOST)
    return jnp.arange(keys) <= jnp.arange(queries)[:, None] + offset


def make_attention_mask(query_valid: ArrayLike, key_valid: ArrayLike) -> jax.Array:
    """The mask that lets valid queries attend to valid keys, and excludes padding.

    Args:
        query_valid: booleans of shape (batch..., queries), False for padding.
        key_valid: booleans of shape (batch..., keys).

    Returns:
        Booleans of shape (batch..., 1, queries, keys), the same for all heads.

    Raises:
        OperandError: for arrays that are not boolean, such as lengths or tokens; a `TypeError`.

    >>> make_attention_mask(jnp.asarray([True, True]), jnp.asarray([True, False])).shape
    (1, 2, 2)
    """
    fix = "use a comparison, such as tokens != padding or jnp.arange(n) < lengths[:, None]"
    valid = [as_boolean(array, name, fix) for name, array in (("query_valid", query_valid), ("key_valid", key_valid))]
    if 0 in (valid[0].ndim, valid[1].ndim):
        raise ArgumentError(
            f"query_valid and key_valid must have shape (batch..., length), got {[a.shape for a in valid]}"
        )
    return cast("jax.Array", combine_masks(valid[0][..., None, :, None], valid[1][..., None, None, :]))


def combine_masks(*masks: ArrayLike | None) -> jax.Array | None:
    """Combine masks to one that attends where all of them attend.

    Args:
        masks: boolean masks that broadcast against each other, or None, which is skipped.

    Returns:
        Booleans of the shape they broadcast to, or None if all are None.

    Raises:
        OperandError: for a mask that is not boolean; a `TypeError`.
        ArgumentError: for shapes that do not broadcast against each other; a `ValueError`.

    >>> combine_masks(make_causal_mask(2), None, jnp.asarray([False, True])).astype(int)
    Array([[0, 0],
           [0, 1]], dtype=int32)
    """
    arrays = [as_boolean(mask, "a mask", "use mask.astype(bool)") for mask in masks if mask is not None]
    try:
        np.broadcast_shapes(*(mask.shape for mask in arrays))
    except ValueError:
        raise ArgumentError(f"masks must have shapes that broadcast, got {[mask.shape for mask in arrays]}") from None
    return functools.reduce(operator.and_, arrays) if arrays else None


def split_additive(mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Split a floating mask into booleans and the numbers that remain to be added.

    The smallest number of the format, and anything below, means False. Adding -65504 to the scores would not exclude
    keys, since scores of float16 keys may be larger than that.

    >>> split_additive(jnp.asarray([0.5, -65504, -jnp.inf], "float16"))
    (Array([ True, False, False], dtype=bool), Array([0.5, 0. , 0. ], dtype=float16))
    """
    attends = ~(mask <= as_format(mask.dtype).min)  # NaN attends, so it reaches the result
    return attends, jnp.where(attends, mask, jnp.zeros_like(mask))


def as_boolean(mask: ArrayLike, what: str, fix: str) -> jax.Array:
    """Convert a boolean mask to a JAX array.

    Raises:
        OperandError: for a mask that is not boolean, with the fix; a `TypeError`.
    """
    array = as_array(what, mask)
    if as_format(array.dtype).category != "bool":
        raise OperandError(f"{what} must be boolean, got {array.dtype}; {fix}")
    return array
