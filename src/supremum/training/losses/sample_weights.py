"""Sample weights, and the reduction of losses."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import jax
import jax.numpy as jnp

from supremum.errors import ArgumentError, UnknownNameError

# Part of JAX's cache key: a loss that a user jitted is traced again inside a replica.
_axis: Any = jax.make_user_context(default_value=None)

REDUCTIONS: Final = {"mean": "mean", "sum_over_batch_size": "mean", "sum": "sum", "none": None, None: None}
"""The reductions by name; Keras' names are included."""


def as_reduction(reduction: Any) -> str | None:
    """Look up a reduction by name: `"mean"`, `"sum"` or None."""
    if not isinstance(reduction, (str, type(None))) or reduction not in REDUCTIONS:
        raise UnknownNameError("reduction", reduction, [name for name in REDUCTIONS if name is not None])
    return REDUCTIONS[reduction]


def spread_weights(weights: jax.Array, shape: tuple[int, ...], what: str = "sample_weight") -> jax.Array:
    """Append axes to weights until they have as many axes as the values.

    Args:
        weights: shape (), or the first axes of `shape`; an axis of length 1 broadcasts.
        shape: the shape of the values.
        what: the name of the weights in error messages.

    Returns:
        An array that broadcasts to `shape`.

    Raises:
        ArgumentError: if the weights do not fit the values; a `ValueError`.

    >>> spread_weights(jnp.ones(4), (4, 7)).shape
    (4, 1)
    """
    given = weights.shape
    if len(given) > len(shape) or any(a not in (1, b) for a, b in zip(given, shape, strict=False)):
        fix = f"give {what}[..., 0]" if given[-1:] == (1,) and given[:-1] == shape else f"give one of shape {shape[:1]}"
        raise ArgumentError(f"{what} has shape {given}, but the values that it weights have shape {shape}; {fix}")
    return weights.reshape(*given, *(1 for _ in shape[len(given) :]))


def weighted(values: jax.Array, weights: Any) -> jax.Array:
    """Multiply values by weights; a value with weight 0 becomes 0 even if it is not finite.

    Args:
        values: shape (batch, ...).
        weights: as for `spread_weights`.
    """
    spread = spread_weights(weights, values.shape).astype(values.dtype)
    return jnp.where(spread == 0, jnp.zeros_like(values), values * spread)


@contextmanager
def replicas(axis_name: str) -> Generator[None]:
    """Reduce losses in the `with` block as losses of one replica's part of a batch.

    The mean of the reduced losses over the replicas is the loss of the whole batch.

    Args:
        axis_name: the mesh axis of the replicas.
    """
    with _axis(axis_name):
        yield


def reduced(values: jax.Array, reduction: str | None, counts: jax.Array | None = None) -> jax.Array:
    """Reduce losses to their mean or sum, in their dtype.

    In a replica, the mean of the results over the replicas is the mean or sum of all values.

    Args:
        values: weighted losses of examples.
        reduction: `"mean"`, `"sum"` or None, which returns the values as they are.
        counts: bools in the shape of the values, which values count in a mean; None for all. Values that do not count
            must be 0. A mean of no values is 0.
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
