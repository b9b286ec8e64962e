"""Attention over chunks of keys, with a running maximum and sum for each row and recomputation in the backward pass.

Milakov and Gimelshein 2018, "Online normalizer calculation for softmax" (arXiv:1805.02867), algorithm 3; Rabe and
Staats 2021, "Self-attention does not need O(n^2) memory" (arXiv:2112.05682). Apart from operands and results, memory
holds the scores of one chunk at a time. One chunk of all keys is the plain computation.

With 16-bit inputs, two products have 16-bit operands: query by key and, in the backward pass, cotangent by value. Both
accumulate in float32 and return float32. The operands of the other products are probabilities or gradients of scores,
so they run in float32. In float16 a probability would underflow (one of 65,536 equal ones is subnormal) and a gradient
would overflow (it is as large as a cotangent times a value). The derivative rule is explicit for this reason: JAX's
rule would multiply float32 cotangents by 16-bit operands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from supremum.formats import DType
from supremum.nn.functional.masks import make_causal_mask

Chunk: TypeAlias = tuple[Any, int]
"""The first key of a chunk, which may be traced, and the number of keys."""


class Plan(NamedTuple):
    """The static options of attention, which together with shapes determine the compiled program.

    Attributes:
        wide: the dtype of scores, probabilities and sums.
        scale: the factor of the products of queries and keys.
        is_causal: whether query i ignores all keys after i.
        dropout_rate: the share of probabilities to set to zero; the others are divided by `1 - dropout_rate`.
        chunk: the number of keys to process at once, at least 1.
        members: the number of query heads for each head of keys.
        precision: the precision of products on the device; None for JAX's default.
    """

    wide: DType
    scale: float
    is_causal: bool
    dropout_rate: float
    chunk: int
    members: int
    precision: Any = None


class Inputs(NamedTuple):
    """The arrays of attention. `groups` are the heads of keys and values, each with `members` heads of queries.

    The members are consecutive along one axis of `rows`, members times queries. With a separate axis, XLA would copy
    products into its own order of axes, even with one member per group.

    Attributes:
        query: (batch..., rows, groups, head_dim), in the dtype of key and value.
        key: (batch..., keys, groups, head_dim).
        value: (batch..., keys, groups, value_dim).
        bias: real numbers that broadcast to the scores (batch..., groups, members, queries, keys) and have as many
            dimensions; or None.
        mask: booleans of a shape like that of the bias, True attends; or None.
        dropout_key: a random key, or None for no dropout.
    """

    query: jax.Array
    key: jax.Array
    value: jax.Array
    bias: jax.Array | None
    mask: jax.Array | None
    dropout_key: jax.Array | None


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def attend(plan: Plan, inputs: Inputs) -> jax.Array:
    """Sum values weighted by the softmax of the scores.

    Returns:
        An array of shape (batch..., rows, groups, value_dim) in the dtype of the values, rounded once; zeros for
        queries that attend to no key.
    """
    return _forward(plan, inputs)[0]


def _forward(plan: Plan, inputs: Inputs) -> tuple[jax.Array, tuple[Any, ...]]:
    wide, rows = plan.wide, _rows(inputs)

    def step(carry: Any, chunk: Chunk) -> Any:
        scores = _scores(plan, inputs, chunk)
        # The shift cancels out, so second derivatives do not go through it.
        higher = lax.stop_gradient(jnp.max(scores, -1, initial=-jnp.inf))
        if carry is not None:
            higher = jnp.maximum(carry[0], higher)
        shift = _finite_maximum(higher)
        weights = jnp.exp(scores - shift[..., None])
        kept = weights * _dropout(plan, inputs, chunk)
        added = jnp.einsum(
            "...grk,...kgd->...grd", kept, _keys(inputs.value, chunk).astype(wide), precision=plan.precision
        )
        if carry is None:
            return higher, jnp.sum(weights, -1), added
        top, total, sums = carry
        fade = jnp.exp(top - shift)
        return higher, total * fade + jnp.sum(weights, -1), sums * fade[..., None] + added

    nothing = jnp.full(rows, -jnp.inf, wide), jnp.zeros(rows, wide), jnp.zeros((*rows, inputs.value.shape[-1]), wide)
    # A single chunk needs no initial carry, and XLA would not remove one.
    start = None if inputs.key.shape[-3] == plan.chunk else nothing
    top, total, sums = _over_chunks(plan, inputs, step, start)
    inverse = 1 / jnp.where(total == 0, jnp.ones_like(total), total)
    outputs = sums * inverse[..., None]
    # Maximum and sum stay separate; in one combined logarithm, a large maximum would absorb the sum.
    residuals = inputs, outputs, _finite_maximum(top), inverse
    return jnp.moveaxis(outputs, -2, -3).astype(inputs.value.dtype), residuals


def _backward(plan: Plan, residuals: tuple[Any, ...], cotangent: jax.Array) -> tuple[Inputs]:
    inputs, outputs, shift, inverse = residuals
    query, key, value, bias, wide = inputs.query, inputs.key, inputs.value, inputs.bias, plan.wide
    upstream = jnp.moveaxis(cotangent, -3, -2)
    wide_upstream, wide_query = upstream.astype(wide), query.astype(wide)
    # The sum over keys of probability times gradient, computed from outputs before rounding.
    mean = jnp.sum(wide_upstream * outputs, -1)

    def step(gradients: Any, chunk: Chunk) -> Any:
        of_query, of_key, of_value, of_bias = gradients
        dropout = _dropout(plan, inputs, chunk)
        probabilities = jnp.exp(_scores(plan, inputs, chunk) - shift[..., None]) * inverse[..., None]
        of_kept = jnp.einsum(
            "...grd,...kgd->...grk",
            upstream,
            _keys(value, chunk),
            preferred_element_type=wide,
            precision=plan.precision,
        )
        of_scores = probabilities * (of_kept * dropout - mean[..., None])
        added = jnp.einsum("...grk,...kgd->...rgd", of_scores, _keys(key, chunk).astype(wide), precision=plan.precision)
        for_key = jnp.einsum("...grk,...rgd->...kgd", of_scores, wide_query, precision=plan.precision) * plan.scale
        for_value = jnp.einsum(
            "...grk,...grd->...kgd", probabilities * dropout, wide_upstream, precision=plan.precision
        )
        return (
            of_query + added * plan.scale,
            _with_keys(of_key, for_key, chunk),
            _with_keys(of_value, for_value, chunk),
            None if of_bias is None else _with_bias(of_bias, _by_member(plan, of_scores), chunk),
        )

    # The gradient of a bias shared by all keys accumulates over chunks.
    summed = bias is not None and bias.shape[-1] == 1
    nothing = (
        jnp.zeros(query.shape, wide),
        jnp.zeros_like(key),
        jnp.zeros_like(value),
        None if bias is None else jnp.zeros(bias.shape, wide if summed else bias.dtype),
    )
    of_query, of_key, of_value, of_bias = _over_chunks(plan, inputs, step, nothing)
    of_bias = None if bias is None else of_bias.astype(bias.dtype)
    return (Inputs(of_query.astype(query.dtype), of_key, of_value, of_bias, None, None),)


attend.defvjp(_forward, _backward)


def _over_chunks(plan: Plan, inputs: Inputs, step: Callable[[Any, Chunk], Any], carry: Any) -> Any:
    """Apply a step to each chunk in order; the last chunk has the remaining keys."""
    whole, rest = divmod(inputs.key.shape[-3], plan.chunk)
    if whole > 1:
        begins = jnp.arange(whole) * plan.chunk
        carry, _ = lax.scan(lambda carry, begin: (step(carry, (begin, plan.chunk)), None), carry, begins)
    elif whole == 1:
        carry = step(carry, (0, plan.chunk))
    return step(carry, (whole * plan.chunk, rest)) if rest else carry


def _rows(inputs: Inputs) -> tuple[int, ...]:
    """The shape of the scores without the last axis, the keys."""
    *batch, rows, groups, _ = inputs.query.shape
    return (*batch, groups, rows)


def _scores(plan: Plan, inputs: Inputs, chunk: Chunk) -> jax.Array:
    """The scores of a chunk of keys, `-inf` for excluded keys."""
    key = _keys(inputs.key, chunk)
    scores = (
        jnp.einsum(
            "...rgd,...kgd->...grk", inputs.query, key, preferred_element_type=plan.wide, precision=plan.precision
        )
        * plan.scale
    )
    shape, scores = scores.shape, _by_member(plan, scores)
    if inputs.bias is not None:
        scores += _along_scores(inputs.bias, chunk).astype(plan.wide)
    if inputs.mask is not None:
        scores = jnp.where(_along_scores(inputs.mask, chunk), scores, -jnp.inf)
    if plan.is_causal:
        begin, count = chunk
        causal = make_causal_mask(scores.shape[-2], count, offset=-begin)
        scores = jnp.where(causal, scores, -jnp.inf)
    return scores.reshape(shape)


def _by_member(plan: Plan, scores: jax.Array) -> jax.Array:
    """Reshape scores to (batch..., groups, members, queries, keys)."""
    *rest, rows, keys = scores.shape
    return scores.reshape(*rest, plan.members, rows // plan.members, keys)


def _dropout(plan: Plan, inputs: Inputs, chunk: Chunk) -> jax.Array | float:
    """The factors of probabilities: zero, or `1 / (1 - dropout_rate)`.

    Each key has separate random numbers, which therefore do not depend on the chunks.
    """
    if inputs.dropout_key is None:
        return 1.0
    begin, count = chunk
    left = 1 - plan.dropout_rate
    numbers = jax.vmap(partial(jax.random.fold_in, inputs.dropout_key))(begin + jnp.arange(count))
    keep = jax.vmap(partial(jax.random.bernoulli, p=left, shape=_rows(inputs)))(numbers)
    return jnp.moveaxis(keep, 0, -1).astype(plan.wide) / left


def _finite_maximum(top: jax.Array) -> jax.Array:
    """The maximum of scores, or zero if all are `-inf`, since `-inf` minus `-inf` is NaN."""
    return jnp.where(top == -jnp.inf, jnp.zeros_like(top), top)


def _keys(array: jax.Array, chunk: Chunk) -> jax.Array:
    """Take a chunk of keys or values."""
    return lax.dynamic_slice_in_dim(array, *chunk, axis=array.ndim - 3)


def _with_keys(array: jax.Array, part: jax.Array, chunk: Chunk) -> jax.Array:
    """Write a chunk into keys or values, rounded to their dtype."""
    return lax.dynamic_update_slice_in_dim(array, part.astype(array.dtype), chunk[0], axis=array.ndim - 3)


def _along_scores(array: jax.Array, chunk: Chunk) -> jax.Array:
    """Take a chunk of a mask or bias; one that is shared by all keys stays whole."""
    return array if array.shape[-1] == 1 else lax.dynamic_slice_in_dim(array, *chunk, axis=array.ndim - 1)


def _with_bias(of_bias: jax.Array, of_scores: jax.Array, chunk: Chunk) -> jax.Array:
    """Add the gradient of a chunk of scores to that of a bias, summed over axes where the bias has length 1."""
    axes = tuple(axis for axis, size in enumerate(of_bias.shape) if size == 1)
    part = jnp.sum(of_scores, axes, keepdims=True)
    if of_bias.shape[-1] == 1:
        return of_bias + part
    return lax.dynamic_update_slice_in_dim(of_bias, part.astype(of_bias.dtype), chunk[0], axis=of_bias.ndim - 1)
