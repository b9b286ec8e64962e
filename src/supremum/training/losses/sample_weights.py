"""Weights of examples, and what losses of examples are reduced to."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import jax
import jax.numpy as jnp

from supremum.errors import ArgumentError, UnknownNameError

# Part of JAX's cache key: a loss that a user jitted is traced again inside of a replica.
_axis: Any = jax.make_user_context(default_value=None)

REDUCTIONS: Final = {"mean": "mean", "sum_over_batch_size": "mean", "sum": "sum", "none": None, None: None}
"""What a reduction may be called, Keras' names too, and what it is."""


def as_reduction(reduction: Any) -> str | None:
    """`"mean"`, `"sum"` or None, from any of their names."""
    if not isinstance(reduction, (str, type(None))) or reduction not in REDUCTIONS:
        raise UnknownNameError("reduction", reduction, [name for name in REDUCTIONS if name is not None])
    return REDUCTIONS[reduction]


def spread_weights(weights: jax.Array, shape: tuple[int, ...], what: str = "sample_weight") -> jax.Array:
    """Weights with an axis for each of those that they weight.

    Args:
        weights: shape (), or that of the first axes of `shape`; an axis of length 1 stands for any.
        shape: of the values.
        what: what the weights are called.

    Returns:
        An array that broadcasts to `shape`.

    Raises:
        ArgumentError: for another shape; a `ValueError`.

    >>> spread_weights(jnp.ones(4), (4, 7)).shape
    (4, 1)
    """
    given = weights.shape
    if len(given) > len(shape) or any(a not in (1, b) for a, b in zip(given, shape, strict=False)):
        fix = f"give {what}[..., 0]" if given[-1:] == (1,) and given[:-1] == shape else f"give one of shape {shape[:1]}"
        raise ArgumentError(f"{what} has shape {given}, but the values that it weights have shape {shape}; {fix}")
    return weights.reshape(*given, *(1 for _ in shape[len(given) :]))


def weighted(values: jax.Array, weights: Any) -> jax.Array:
    """Values times weights; what has no weight counts as 0, also where it is not finite.

    Args:
        values: shape (batch, ...).
        weights: as for `spread_weights`.
    """
    spread = spread_weights(weights, values.shape).astype(values.dtype)
    return jnp.where(spread == 0, jnp.zeros_like(values), values * spread)


@contextmanager
def replicas(axis_name: str) -> Generator[None]:
    """The time in which losses are of a part of a batch.

    A loss is reduced so that the mean over the replicas is the loss of the whole batch.

    Args:
        axis_name: the axis of the mesh that the parts lie along.
    """
    with _axis(axis_name):
        yield


def reduced(values: jax.Array, reduction: str | None, counts: jax.Array | None = None) -> jax.Array:
    """Their mean or sum, in their dtype; in a replica that of which the mean over the replicas is that of all values.

    Args:
        values: losses of examples, weighted.
        reduction: `"mean"`, `"sum"` or None, which leaves them as they are.
        counts: bool, which of them a mean is over, of their shape; None for all. Those that do not count are 0, and so
            is a mean over none.
    """
    if reduction is None:
        return values
    axis = _axis.value
    if reduction == "sum":
        total = jnp.sum(values)
        return total if axis is None else total * jax.lax.axis_size(axis)
    if values.size == 0:
        return jnp.zeros((), values.dtype)
    if counts is None:
        return jnp.mean(values)
    if axis is None:
        return jnp.mean(values, where=counts | ~jnp.any(counts))
    number = jax.lax.pmean(jnp.sum(counts, dtype=values.dtype), axis)
    return jnp.sum(values, where=counts) / jnp.where(number == 0, jnp.ones_like(number), number)
