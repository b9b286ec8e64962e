"""Dropout, and the random keys of `jax.random` that it takes."""

from __future__ import annotations

import math
from typing import TypeGuard

import jax
import jax.numpy as jnp

from supremum.argument_checks import real_within, whole_number
from supremum.errors import OperandError
from supremum.formats import as_format, at_least_float32
from supremum.nn.functional.dtype_promotion import promote_arrays
from supremum.nn.functional.shape_checks import Ints, as_axes
from supremum.typing import ArrayLike


def dropout(key: jax.Array, x: ArrayLike, rate: float, *, broadcast_axes: Ints = ()) -> jax.Array:
    """Set random values to zero, and divide the others by `1 - rate` to keep the mean.

    Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", 2014. The scaling happens in
    training, not in inference.

    Args:
        key: a random key.
        x: values of a floating or complex dtype.
        rate: the probability of dropping a value, from 0 to 1.
        broadcast_axes: the axes along which values are dropped together.

    Returns:
        An array of the shape and dtype of `x`; the scaling is computed in at least float32 and rounded once.

    Raises:
        ArgumentError: for a rate that is not from 0 to 1, or axes that `x` does not have; a `ValueError`.
        OperandError: for integers, which cannot be scaled, or a `key` that is not a random key; a `TypeError`.

    >>> dropout(jax.random.key(0), jnp.ones(8, "bfloat16"), 0.5)
    Array([0, 0, 2, 2, 0, 2, 2, 0], dtype=bfloat16)
    """
    rate = real_within("rate", rate, 0, 1)
    (x,) = promote_arrays(x, inexact=False)
    row = as_format(x.dtype)
    if not row.is_inexact:
        raise OperandError(f"dropout needs floating-point or complex values, got {row}; use x.astype('float32')")
    shared = as_axes("broadcast_axes", broadcast_axes, x.ndim)
    if not is_key(key):
        raise OperandError(f"dropout needs a random key, got {type(key).__name__}; use key=jax.random.key(0)")
    if rate == 1:
        return jnp.zeros_like(x)
    shape = tuple(1 if axis in shared else size for axis, size in enumerate(x.shape))
    kept = jax.random.bernoulli(key, 1 - rate, shape)
    scaled = (x.astype(at_least_float32(row)) / (1 - rate)).astype(x.dtype)
    return jnp.where(kept, scaled, jnp.zeros((), x.dtype))


def rate_below_one(name: str, rate: object) -> float:
    """Check a probability below 1.

    Args:
        name: the name of the argument.
        rate: a number from 0 to below 1.

    Raises:
        OperandError: for anything that is not a number; a `TypeError`.
        ArgumentError: for a number outside this range; a `ValueError`.
    """
    return real_within(name, rate, 0, math.nextafter(1, 0), "from 0 to below 1")


def is_key(key: object) -> TypeGuard[jax.Array]:
    """Whether a value is a single key of `jax.random`, typed or raw."""
    if not isinstance(key, jax.Array):
        return False
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key.ndim == 0
    return key.dtype == "uint32" and key.ndim == 1  # a raw key of `jax.random.PRNGKey`


def as_key(seed: object) -> jax.Array:
    """Convert a seed to a random key.

    Args:
        seed: an integer of at most 64 bits, or a key.

    Raises:
        OperandError: for anything else; a `TypeError`.
        ArgumentError: for a larger number; a `ValueError`.

    >>> as_key("today")
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: seed must be a whole number, got 'today'
    """
    return seed if is_key(seed) else jax.random.key(whole_number("seed", seed, -(2**63), 2**63 - 1))
