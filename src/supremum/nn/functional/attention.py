"""Scaled dot-product attention that also works for 16-bit formats and long sequences, and rotary positions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from supremum.argument_checks import flag, real_number
from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format, at_least_float32
from supremum.nn.functional.dropout import rate_below_one
from supremum.nn.functional.dtype_promotion import as_array, promote_arrays, refuse_complex, refuse_none
from supremum.nn.functional.masks import split_additive
from supremum.nn.functional.precision import as_precision
from supremum.nn.functional.shape_checks import broadcasts, positive_int
from supremum.typing import ArrayLike, DTypeLike

Arrays: TypeAlias = dict[str, jax.Array]

SCORES_AT_ONCE = 2**26
"""The default number of scores held at once: 256 MiB of float32, or 4,096 queries and keys in four heads. Gradients
need more: 0.9 GiB for 65,536 queries and keys in one head, 1.5 GiB in eight, according to XLA's buffer sizes on CPU,
where the plain computation needs 64 GiB for one head."""


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    dropout_rate: float = 0.0,
    dropout_key: jax.Array | None = None,
    chunk: int | None = None,
    dtype: DTypeLike | None = None,
    precision: lax.PrecisionLike = None,
) -> jax.Array:
    """Sum values by the softmax of `scale * (query · key) + bias` (Vaswani et al. 2017, "Attention is all you need").

    Queries and keys are multiplied in the result type of queries, keys and values. Scores, softmax and probabilities
    are in at least float32, since float16 would overflow or lose small ones, and the result is rounded once. If there
    are many scores, they are computed for some queries at a time, and again in the backward pass, so that memory is
    bounded (Rabe and Staats 2021, "Self-attention does not need O(n^2) memory", arXiv:2112.05682).

    Args:
        query: shape (batch..., queries, heads, head_dim), real.
        key: shape (batch..., keys, key_value_heads, head_dim); `key_value_heads` must divide `heads`, and each serves
            consecutive heads of queries (Ainslie et al. 2023, "GQA", arXiv:2305.13245).
        value: shape (batch..., keys, key_value_heads, value_dim).
        mask: booleans that broadcast to (batch..., heads, queries, keys), True attends. A floating mask is added like
            `bias`; it excludes keys where it is the smallest number of its dtype, as in Flax, or `-inf`.
        bias: real numbers to add to the scores, in at least float32; they broadcast like `mask`.
        is_causal: whether query i ignores all keys after key i.
        scale: a number; None for `head_dim ** -0.5`.
        dropout_rate: the share of probabilities to drop at random; the others are divided by `1 - dropout_rate`.
        dropout_key: the random key for dropout. The result does not depend on `chunk`.
        chunk: the number of queries to process at once; None for as many as have at most `SCORES_AT_ONCE` scores.
        dtype: the compute dtype; None for the result type of query, key and value. Integers become at least float32.
        precision: the precision of the products on the device, such as `"highest"`, as in JAX; None for JAX's default.

    Returns:
        An array of shape (batch..., queries, heads, value_dim) in the compute dtype. Queries that attend to no key get
        zeros and zero gradients.

    Raises:
        OperandError: for complex arrays, an integer mask or a boolean bias; a `TypeError`.
        ArgumentError: for shapes that do not match, or numbers out of range; a `ValueError`.

    >>> x = jnp.ones((1, 3, 2, 4), jnp.bfloat16)
    >>> result = dot_product_attention(x, x, x, is_causal=True)
    >>> result.shape, result.dtype
    ((1, 3, 2, 4), dtype(bfloat16))
    """
    refuse_none(query=query, key=key, value=value)
    flag("is_causal", is_causal)
    refuse_complex("attention", dtype=dtype, query=query, key=key, value=value, mask=mask, bias=bias)
    query, key, value = promote_arrays(query, key, value, dtype=dtype)
    sizes = _sizes(query, key, value)
    bias, mask = _bias_and_mask(bias, mask)
    wide = at_least_float32(query.dtype)
    if bias is not None and as_format(bias.dtype).is_inexact and not as_format(wide).holds(as_format(bias.dtype)):
        wide = at_least_float32(bias.dtype)
    rate = rate_below_one("dropout_rate", dropout_rate)
    if rate and dropout_key is None:
        raise ArgumentError(f"dropout_rate={rate} needs a random key; use dropout_key=jax.random.key(0)")
    size = _chunk(chunk, sizes)
    # The gradients of keys, values and a shared bias add up over chunks, and must not be rounded before.
    key = key if size >= sizes.queries else key.astype(wide)
    shared = {"key": jnp.moveaxis(key, -2, -3), "value": jnp.moveaxis(value.astype(wide), -2, -3)}
    by_group = query.reshape(*query.shape[:-2], sizes.groups, sizes.members, query.shape[-1])
    rows = {"query": jnp.moveaxis(by_group, -4, -2), "place": jnp.arange(sizes.queries)[:, None]}
    for name, array in (("bias", bias), ("mask", mask)):
        if array is None:
            continue
        array = _by_group(name, array, sizes)
        if array.shape[-2] > 1:
            rows[name] = array
        else:
            shared[name] = array.astype(wide) if name == "bias" else array
    attend = partial(
        _attend,
        scale=_scale(scale, query.shape[-1]),
        is_causal=is_causal,
        dropout=(rate, dropout_key),
        precision=as_precision(precision),
    )
    results = _in_chunks(attend, rows, shared, size)
    return jnp.moveaxis(results, -2, -4).reshape(*query.shape[:-1], value.shape[-1]).astype(query.dtype)


def _in_chunks(attend: Callable[..., jax.Array], rows: Arrays, shared: Arrays, size: int) -> jax.Array:
    """Apply a function to all rows at once, or to `size` of them at a time; the backward pass then does so again."""
    queries = rows["place"].shape[0]
    if size >= queries:
        return attend(rows, shared)

    @jax.checkpoint
    def chunk(part: Arrays) -> jax.Array:
        return jnp.moveaxis(attend({name: jnp.moveaxis(array, 0, -2) for name, array in part.items()}, shared), -2, 0)

    whole = queries // size
    first = {name: jnp.moveaxis(array, -2, 0) for name, array in rows.items()}
    parts = {name: array[: whole * size].reshape(whole, size, *array.shape[1:]) for name, array in first.items()}
    results = lax.map(chunk, parts)
    results = results.reshape(whole * size, *results.shape[2:])
    if whole * size < queries:
        results = jnp.concatenate([results, chunk({name: array[whole * size :] for name, array in first.items()})])
    return jnp.moveaxis(results, 0, -2)


def _attend(
    rows: Arrays, shared: Arrays, *, scale: float, is_causal: bool, dropout: tuple[float, Any], precision: Any
) -> jax.Array:
    """Compute the results of queries, of shape (batch..., groups, members, queries, value_dim).

    Args:
        rows: what belongs to each query: its place, its vectors, and its rows of the bias and the mask.
        shared: keys, values, and the bias and mask that all queries share.
        scale: the factor of the products of queries and keys.
        is_causal: whether queries ignore all keys after their place.
        dropout: the share of probabilities to set to zero, and a random key.
        precision: the precision of products on the device; None for JAX's default.
    """
    arrays = {**shared, **rows}
    query, key, value = arrays["query"], arrays["key"], arrays["value"]
    products = partial(jnp.einsum, preferred_element_type=value.dtype, precision=precision)
    # The products have one axis of all queries of a group: XLA multiplies with two of them several times as slowly.
    merged = (*key.shape[:-2], math.prod(query.shape[-3:-1]))
    scores = products("...rd,...kd->...rk", query.reshape(*merged, query.shape[-1]), key) * scale
    scores = scores.reshape(*query.shape[:-1], key.shape[-2])
    if "bias" in arrays:
        scores += arrays["bias"].astype(scores.dtype)
    if "mask" in arrays:
        scores = jnp.where(arrays["mask"], scores, -jnp.inf)
    if is_causal:
        scores = jnp.where(jnp.arange(scores.shape[-1]) <= arrays["place"], scores, -jnp.inf)
    # The maximum cancels out, so derivatives do not go through it. It is -inf for a query that attends to no key.
    top = lax.stop_gradient(jnp.max(scores, -1, keepdims=True, initial=-jnp.inf))
    weights = jnp.exp(scores - jnp.where(top == -jnp.inf, 0.0, top))
    total = jnp.sum(weights, -1, keepdims=True)
    rate, dropout_key = dropout
    if rate:
        weights = jnp.where(_kept(dropout_key, rate, arrays["place"], weights.shape), weights / (1 - rate), 0.0)
    sums = products("...rk,...kd->...rd", weights.reshape(*merged, weights.shape[-1]), value)
    return sums.reshape(*query.shape[:-1], value.shape[-1]) / jnp.where(total == 0, 1.0, total)


def _kept(dropout_key: jax.Array, rate: float, place: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draw which probabilities are kept. Each query has its own random numbers, which do not depend on the chunks."""
    *rest, _, keys = shape
    keys_of_queries = jax.vmap(partial(jax.random.fold_in, dropout_key))(place[:, 0])
    kept = jax.vmap(partial(jax.random.bernoulli, p=1 - rate, shape=(*rest, keys)))(keys_of_queries)
    return jnp.moveaxis(kept, 0, -2)


class _Sizes(NamedTuple):
    batch: tuple[int, ...]
    queries: int
    keys: int
    groups: int
    members: int

    @property
    def scores(self) -> tuple[int, ...]:
        return (*self.batch, self.groups * self.members, self.queries, self.keys)


def _sizes(query: jax.Array, key: jax.Array, value: jax.Array) -> _Sizes:
    shapes = f"query {query.shape}, key {key.shape}, value {value.shape}"
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise ArgumentError(f"query, key and value must have shape (batch..., length, heads, dim), got {shapes}")
    *batch, queries, heads, head_dim = query.shape
    keys, groups = key.shape[-3:-1]
    if not query.shape[:-3] == key.shape[:-3] == value.shape[:-3]:
        raise ArgumentError(f"query, key and value must have the same batch shape, got {shapes}")
    if head_dim != key.shape[-1]:
        raise ArgumentError(f"query and key must have the same head dimension, got {shapes}")
    if (keys, groups) != value.shape[-3:-1]:
        raise ArgumentError(f"key and value must have the same length and heads, got {shapes}")
    if groups == 0 or heads % groups:
        raise ArgumentError(f"the heads of key and value must divide those of query, got {shapes}")
    return _Sizes(tuple(batch), queries, keys, groups, heads // groups)


def _bias_and_mask(bias: Any, mask: Any) -> tuple[jax.Array | None, jax.Array | None]:
    """Split a floating mask into a boolean mask and a part that is added to the bias."""
    bias = None if bias is None else as_array("bias", bias)
    if bias is not None and as_format(bias.dtype).category == "bool":
        raise OperandError("the bias of attention must be numbers to add to scores, got bool; use mask=")
    if mask is None:
        return bias, None
    mask = as_array("mask", mask)
    if as_format(mask.dtype).category == "bool":
        return bias, mask
    if as_format(mask.dtype).category != "float":
        raise OperandError(
            f"the mask of attention must be boolean, or floating-point to add, got {mask.dtype}; use mask.astype(bool)"
        )
    mask, added = split_additive(mask)
    if bias is None:
        return added, mask
    wide = max((bias.dtype, added.dtype), key=lambda dtype: as_format(at_least_float32(dtype)).bits)
    return bias.astype(at_least_float32(wide)) + added.astype(at_least_float32(wide)), mask


def _by_group(name: str, array: jax.Array, sizes: _Sizes) -> jax.Array:
    """Split the axis of heads of a mask or bias into groups and members."""
    if not broadcasts(array.shape, sizes.scores):
        raise ArgumentError(
            f"the {name} of attention must broadcast to (batch..., heads, queries, keys), here {sizes.scores}, "
            f"got {array.shape}"
        )
    shape = (1,) * (len(sizes.scores) - array.ndim) + array.shape
    heads = (1, 1) if shape[-3] == 1 else (sizes.groups, sizes.members)
    return array.reshape(*shape[:-3], *heads, *shape[-2:])


def _scale(scale: float | None, head_dim: int) -> float:
    if scale is None:
        return head_dim**-0.5 if head_dim else 1.0
    if isinstance(scale, jax.Array):
        raise OperandError("the scale of attention must be a number, got an array; multiply the query by it")
    return real_number("scale", scale)


def _chunk(chunk: int | None, sizes: _Sizes) -> int:
    if chunk is not None:
        return positive_int("chunk", chunk)
    *others, _, keys = sizes.scores
    return max(SCORES_AT_ONCE // max(math.prod([*others, keys]), 1), 1)


def rotary_embedding(
    x: ArrayLike, positions: ArrayLike, *, base: float = 10000.0, dtype: DTypeLike | None = None
) -> jax.Array:
    """Rotate queries or keys by angles that grow with their position; products then depend on distances only.

    Su et al. 2021, "RoFormer" (arXiv:2104.09864), section 3.2.2: pair i of a head of dimension d is rotated by
    `position * base ** (-2 * i / d)`. Element i is paired with element i + d / 2, as in GPT-NeoX and Llama. RoFormer
    pairs neighbors, which differs only in the order of elements. Angles and products are computed in at least float32,
    since bfloat16 cannot distinguish position 256 from 257, and rounded once.

    Args:
        x: real numbers of shape (batch..., length, heads, head_dim), with an even head_dim.
        positions: integers or real numbers that broadcast to (batch..., length).
        base: about the number of positions in which the slowest pair turns by 1 radian; 10,000 in the paper.
        dtype: the dtype of the result; None for the dtype of `x`.

    Returns:
        An array of the shape of `x`.

    Raises:
        OperandError: for complex or boolean arguments; a `TypeError`.
        ArgumentError: for shapes that do not match, or a base that is not positive; a `ValueError`.

    >>> turned = rotary_embedding(jnp.ones((3, 1, 2)), jnp.arange(3))
    >>> [round(float((turned[i] * turned[i + 1]).sum()), 3) for i in range(2)]
    [1.081, 1.081]
    """
    refuse_complex("rotary_embedding", dtype=dtype, x=x, positions=positions)
    (x,), positions = promote_arrays(x, dtype=dtype), as_array("positions", positions)
    if x.ndim < 3 or x.shape[-1] % 2:
        raise ArgumentError(
            f"x must have shape (batch..., length, heads, head_dim) with an even head_dim, got {x.shape}"
        )
    if as_format(positions.dtype).category == "bool":
        raise OperandError("positions must be numbers, got bool; use jnp.arange(length)")
    if not broadcasts(positions.shape, x.shape[:-2]):
        raise ArgumentError(
            f"positions must broadcast to (batch..., length), here {x.shape[:-2]}, got {positions.shape}"
        )
    if not real_number("base", base) > 0:
        raise ArgumentError(f"base must be positive, got {base}")
    wide = at_least_float32(x.dtype)
    half = x.shape[-1] // 2
    rates = jnp.asarray(base ** (-np.arange(half) / max(half, 1)), wide)
    angles = positions.astype(wide)[..., None, None] * rates
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    first, second = jnp.split(x.astype(wide), 2, axis=-1)
    turned = first * cos - second * sin, second * cos + first * sin
    return jnp.concatenate(turned, -1).astype(x.dtype)
