"""Attention over keys in chunks: the maximum and the sum of each row run along, and the backward pass recomputes.

Milakov and Gimelshein 2018, "Online normalizer calculation for softmax" (arXiv:1805.02867), algorithm 3; Rabe and
Staats 2021, "Self-attention does not need O(n^2) memory" (arXiv:2112.05682). Beside operands and results it holds no
more than the scores of one chunk at a time; one chunk of all keys is the plain computation.

Which products have 16-bit operands, where the inputs are such: query by key and, in the backward pass, cotangent by
value, both accumulated and kept in float32. The other products have the probabilities or the gradients of the scores as
an operand and run in float32: rounded to float16 a probability would underflow (one of 65,536 equal ones is subnormal)
and a gradient overflow (it is as large as a cotangent times a value). The derivative rule is written out for that:
JAX's would multiply float32 cotangents by 16-bit operands.
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
"""Where a chunk of keys begins, which may be traced, and how many it has."""


class Plan(NamedTuple):
    """How attention is computed; what a compiled program depends on beside shapes.

    Attributes:
        wide: the dtype of scores, probabilities and sums.
        scale: what the products of queries and keys are multiplied by.
        is_causal: whether query i attends to no key after i.
        dropout_rate: the share of probabilities that become zero; the others are divided by what is left.
        chunk: how many keys are processed at once, at least 1.
        members: how many heads of queries each head of keys serves.
    """

    wide: DType
    scale: float
    is_causal: bool
    dropout_rate: float
    chunk: int
    members: int


class Inputs(NamedTuple):
    """What attention is computed of. `groups` are the heads of keys and values, each with `members` heads of queries.

    These lie one after another along one axis of `rows`, members times queries: with an axis of their own, products
    would be copied into an order of axes that XLA multiplies in, also where each group has one member only.

    Attributes:
        query: (batch..., rows, groups, head_dim), of the dtype of key and value.
        key: (batch..., keys, groups, head_dim).
        value: (batch..., keys, groups, value_dim).
        bias: real, of as many dimensions as the scores (batch..., groups, members, queries, keys) and broadcasting to
            their shape; or None.
        mask: likewise, boolean, True attends; or None.
        dropout_key: a random key, or None where nothing is dropped.
    """

    query: jax.Array
    key: jax.Array
    value: jax.Array
    bias: jax.Array | None
    mask: jax.Array | None
    dropout_key: jax.Array | None


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def attend(plan: Plan, inputs: Inputs) -> jax.Array:
    """The sum of values, weighted by the softmax of the scores.

    Returns:
        An array of shape (batch..., rows, groups, value_dim) in the dtype of the values, rounded once;
        zeros where a query attends to nothing.
    """
    return _forward(plan, inputs)[0]


def _forward(plan: Plan, inputs: Inputs) -> tuple[jax.Array, tuple[Any, ...]]:
    wide, rows = plan.wide, _rows(inputs)

    def step(carry: Any, chunk: Chunk) -> Any:
        scores = _scores(plan, inputs, chunk)
        # What is subtracted cancels out: no gradients of gradients go through it.
        higher = lax.stop_gradient(jnp.max(scores, -1, initial=-jnp.inf))
        if carry is not None:
            higher = jnp.maximum(carry[0], higher)
        shift = _zero_if_none(higher)
        weights = jnp.exp(scores - shift[..., None])
        kept = weights * _dropout(plan, inputs, chunk)
        added = jnp.einsum("...grk,...kgd->...grd", kept, _keys(inputs.value, chunk).astype(wide))
        if carry is None:
            return higher, jnp.sum(weights, -1), added
        top, total, sums = carry
        fade = jnp.exp(top - shift)
        return higher, total * fade + jnp.sum(weights, -1), sums * fade[..., None] + added

    nothing = jnp.full(rows, -jnp.inf, wide), jnp.zeros(rows, wide), jnp.zeros((*rows, inputs.value.shape[-1]), wide)
    # One chunk of all keys has nothing to go on from, and XLA would not see that.
    start = None if inputs.key.shape[-3] == plan.chunk else nothing
    top, total, sums = _over_chunks(plan, inputs, step, start)
    inverse = 1 / jnp.where(total == 0, jnp.ones_like(total), total)
    outputs = sums * inverse[..., None]
    # The maximum and the sum apart: in one logarithm of both, the sum would be lost next to a large maximum.
    residuals = inputs, outputs, _zero_if_none(top), inverse
    return jnp.moveaxis(outputs, -2, -3).astype(inputs.value.dtype), residuals


def _backward(plan: Plan, residuals: tuple[Any, ...], cotangent: jax.Array) -> tuple[Inputs]:
    inputs, outputs, shift, inverse = residuals
    query, key, value, bias, wide = inputs.query, inputs.key, inputs.value, inputs.bias, plan.wide
    upstream = jnp.moveaxis(cotangent, -3, -2)
    wide_upstream, wide_query = upstream.astype(wide), query.astype(wide)
    # The sum over keys of each probability times its gradient, taken from outputs that are not rounded yet.
    mean = jnp.sum(wide_upstream * outputs, -1)

    def step(gradients: Any, chunk: Chunk) -> Any:
        of_query, of_key, of_value, of_bias = gradients
        dropout = _dropout(plan, inputs, chunk)
        probabilities = jnp.exp(_scores(plan, inputs, chunk) - shift[..., None]) * inverse[..., None]
        of_kept = jnp.einsum("...grd,...kgd->...grk", upstream, _keys(value, chunk), preferred_element_type=wide)
        of_scores = probabilities * (of_kept * dropout - mean[..., None])
        added = jnp.einsum("...grk,...kgd->...rgd", of_scores, _keys(key, chunk).astype(wide))
        for_key = jnp.einsum("...grk,...rgd->...kgd", of_scores, wide_query) * plan.scale
        for_value = jnp.einsum("...grk,...grd->...kgd", probabilities * dropout, wide_upstream)
        return (
            of_query + added * plan.scale,
            _with_keys(of_key, for_key, chunk),
            _with_keys(of_value, for_value, chunk),
            None if of_bias is None else _with_bias(of_bias, _by_member(plan, of_scores), chunk),
        )

    # Of a bias that is one for all keys the gradient adds up over chunks.
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
    """What a step makes of a carry, chunk after chunk; the last one has what is left over."""
    whole, rest = divmod(inputs.key.shape[-3], plan.chunk)
    if whole > 1:
        begins = jnp.arange(whole) * plan.chunk
        carry, _ = lax.scan(lambda carry, begin: (step(carry, (begin, plan.chunk)), None), carry, begins)
    elif whole == 1:
        carry = step(carry, (0, plan.chunk))
    return step(carry, (whole * plan.chunk, rest)) if rest else carry


def _rows(inputs: Inputs) -> tuple[int, ...]:
    """The shape of the scores less its last axis, that of the keys."""
    *batch, rows, groups, _ = inputs.query.shape
    return (*batch, groups, rows)


def _scores(plan: Plan, inputs: Inputs, chunk: Chunk) -> jax.Array:
    """The scores of a chunk of keys, `-inf` where a query does not attend."""
    key = _keys(inputs.key, chunk)
    scores = jnp.einsum("...rgd,...kgd->...grk", inputs.query, key, preferred_element_type=plan.wide) * plan.scale
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
    """Scores of shape (batch..., groups, members, queries, keys)."""
    *rest, rows, keys = scores.shape
    return scores.reshape(*rest, plan.members, rows // plan.members, keys)


def _dropout(plan: Plan, inputs: Inputs, chunk: Chunk) -> jax.Array | float:
    """What probabilities are multiplied by: zero, or what makes up for the zeros.

    Each key has random numbers of its own, so that they do not depend on the chunks.
    """
    if inputs.dropout_key is None:
        return 1.0
    begin, count = chunk
    left = 1 - plan.dropout_rate
    numbers = jax.vmap(partial(jax.random.fold_in, inputs.dropout_key))(begin + jnp.arange(count))
    keep = jax.vmap(partial(jax.random.bernoulli, p=left, shape=_rows(inputs)))(numbers)
    return jnp.moveaxis(keep, 0, -1).astype(plan.wide) / left


def _zero_if_none(top: jax.Array) -> jax.Array:
    """The maximum of scores, zero where there are none: infinity less infinity would be NaN."""
    return jnp.where(top == -jnp.inf, jnp.zeros_like(top), top)


def _keys(array: jax.Array, chunk: Chunk) -> jax.Array:
    """A chunk of keys or values."""
    return lax.dynamic_slice_in_dim(array, *chunk, axis=array.ndim - 3)


def _with_keys(array: jax.Array, part: jax.Array, chunk: Chunk) -> jax.Array:
    """Keys or values with another chunk in them, rounded to their dtype."""
    return lax.dynamic_update_slice_in_dim(array, part.astype(array.dtype), chunk[0], axis=array.ndim - 3)


def _along_scores(array: jax.Array, chunk: Chunk) -> jax.Array:
    """A chunk of a mask or bias, all of it where it is one for all keys."""
    return array if array.shape[-1] == 1 else lax.dynamic_slice_in_dim(array, *chunk, axis=array.ndim - 1)


def _with_bias(of_bias: jax.Array, of_scores: jax.Array, chunk: Chunk) -> jax.Array:
    """The gradient of a bias with that of a chunk of scores in it, summed where the bias is one for all."""
    axes = tuple(axis for axis, size in enumerate(of_bias.shape) if size == 1)
    part = jnp.sum(of_scores, axes, keepdims=True)
    if of_bias.shape[-1] == 1:
        return of_bias + part
    return lax.dynamic_update_slice_in_dim(of_bias, part.astype(of_bias.dtype), chunk[0], axis=of_bias.ndim - 1)
