"""Masks of attention: booleans that broadcast to (batch..., heads, queries, keys), True where a query attends."""

from __future__ import annotations

import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from supremum.argument_checks import whole_number
from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format
from supremum.nn.functional.dtype_promotion import as_array
from supremum.nn.functional.shape_checks import MOST, check_shape


def make_causal_mask(queries: int, keys: int | None = None, *, offset: int | jax.Array = 0) -> jax.Array:
    """The mask with which query i attends to the keys 0 to i + offset.

    Args:
        queries: how many queries.
        keys: how many keys; None for as many.
        offset: how many keys come before the first query; it may be traced.

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


def make_attention_mask(query_valid: Any, key_valid: Any) -> jax.Array:
    """The mask with which valid queries attend to valid keys, and padding to nothing.

    Args:
        query_valid: booleans of shape (batch..., queries), False for padding.
        key_valid: booleans of shape (batch..., keys).

    Returns:
        Booleans of shape (batch..., 1, queries, keys), the same for all heads.

    Raises:
        OperandError: for what is not boolean, such as lengths or tokens; a `TypeError`.

    >>> make_attention_mask(jnp.asarray([True, True]), jnp.asarray([True, False])).shape
    (1, 2, 2)
    """
    fix = "compare first, as in tokens != padding or jnp.arange(n) < lengths[:, None]"
    valid = [as_boolean(array, name, fix) for name, array in (("query_valid", query_valid), ("key_valid", key_valid))]
    if 0 in (valid[0].ndim, valid[1].ndim):
        raise ArgumentError(f"query_valid and key_valid have shape (batch..., length), not {[a.shape for a in valid]}")
    combined = combine_masks(valid[0][..., None, :, None], valid[1][..., None, None, :])
    assert combined is not None
    return combined


def combine_masks(*masks: Any) -> jax.Array | None:
    """The mask that attends where all of them do.

    Args:
        masks: boolean masks that broadcast against each other, or None, which is passed over.

    Returns:
        Booleans of the shape they broadcast to, or None if there is no mask among them.

    Raises:
        OperandError: for a mask that is not boolean; a `TypeError`.
        ArgumentError: for shapes that do not broadcast against each other; a `ValueError`.

    >>> combine_masks(make_causal_mask(2), None, jnp.asarray([False, True])).astype(int)
    Array([[0, 0],
           [0, 1]], dtype=int32)
    """
    given = [as_boolean(mask, "a mask to combine", "give mask.astype(bool)") for mask in masks if mask is not None]
    try:
        np.broadcast_shapes(*(mask.shape for mask in given))
    except ValueError:
        raise ArgumentError(f"masks of shapes {[mask.shape for mask in given]} do not broadcast together") from None
    return functools.reduce(operator.and_, given) if given else None


def additive_mask(mask: Any, dtype: Any) -> jax.Array:
    """A mask to add to scores: zero where a boolean one attends, elsewhere the smallest number of the dtype.

    spec/flax-flip-default-dtypes.md has masks of float16 and bfloat16 use that format's own minimum.
    `dot_product_attention` takes that number for what it stands for, whatever the size of the scores.

    Args:
        mask: booleans, True attends.
        dtype: a floating dtype.

    Raises:
        OperandError: for a mask that is not boolean; a `TypeError`.
        ArgumentError: for a dtype that is not floating; a `ValueError`.

    >>> additive_mask(make_causal_mask(2), "float16").tolist()
    [[0.0, -65504.0], [0.0, 0.0]]
    """
    row, mask = as_format(dtype), as_boolean(mask, "what a mask to add is made of", "give mask.astype(bool)")
    if row.category != "float":
        raise ArgumentError(f"a mask to add is floating, not {row}: give 'float32'")
    return jnp.where(mask, jnp.zeros((), row.dtype), jnp.asarray(row.min, row.dtype))


def split_additive(mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A floating mask as the booleans it stands for, and what is left to add.

    Its format's smallest number, and all below, stand for what does not attend: -65504 alone would not keep out scores
    of float16 keys, which may be larger than that.

    >>> split_additive(jnp.asarray([0.5, -65504, -jnp.inf], "float16"))
    (Array([ True, False, False], dtype=bool), Array([0.5, 0. , 0. ], dtype=float16))
    """
    attends = ~(mask <= as_format(mask.dtype).min)  # NaN attends, and is seen
    return attends, jnp.where(attends, mask, jnp.zeros_like(mask))


def as_boolean(mask: Any, what: str, fix: str) -> jax.Array:
    """A mask as an array of JAX, which must be boolean already.

    Raises:
        OperandError: that says what it is, and the fix; a `TypeError`.
    """
    array = as_array(what, mask)
    if as_format(array.dtype).category != "bool":
        raise OperandError(f"{what} is boolean, not {array.dtype}: {fix}")
    return array
