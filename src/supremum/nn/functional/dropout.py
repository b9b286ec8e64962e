"""Dropout."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import real_within
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format, at_least_float32
from supremum.nn.functional.dtype_promotion import promote_dtype
from supremum.nn.functional.random_keys import is_key
from supremum.nn.functional.shape_checks import Ints, as_axes


def dropout(key: Any, x: Any, rate: float, *, broadcast_axes: Ints = ()) -> jax.Array:
    """Replace values by zero at random, and scale the others so that the mean stays.

    Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", 2014; scaled in training, by
    `1 / (1 - rate)`, rather than afterwards.

    Args:
        key: a random key.
        x: values of a floating or complex dtype.
        rate: the probability of a value to be dropped, from 0 to 1.
        broadcast_axes: the axes along which values are dropped together.

    Returns:
        An array of the shape and dtype of `x`; the scaling is computed in at least float32 and rounded once.

    Raises:
        ArgumentError: for a rate that is not a probability, and for axes that `x` does not have; a `ValueError`.
        OperandError: for integers, which cannot be scaled, and for something that is not a key; a `TypeError`.

    >>> dropout(jax.random.key(0), jnp.ones(8, "bfloat16"), 0.5)
    Array([0, 0, 2, 2, 0, 2, 2, 0], dtype=bfloat16)
    """
    rate = as_rate(rate)
    (x,) = promote_dtype(x, inexact=False)
    row = as_format(x.dtype)
    if not row.is_inexact:
        raise OperandError(f"dropout: {row} values cannot be scaled: give x.astype('float32')")
    shared = as_axes("broadcast_axes", broadcast_axes, x.ndim)
    if not is_key(key):
        raise OperandError(f"dropout takes a random key, not {type(key).__name__}: give key=jax.random.key(0)")
    if rate == 1:
        return jnp.zeros_like(x)
    shape = tuple(1 if axis in shared else size for axis, size in enumerate(x.shape))
    kept = jax.random.bernoulli(key, 1 - rate, shape)
    scaled = (x.astype(at_least_float32(row)) / (1 - rate)).astype(x.dtype)
    return jnp.where(kept, scaled, jnp.zeros((), x.dtype))


def as_rate(rate: Any) -> float:
    """A probability.

    Args:
        rate: a number from 0 to 1.

    Raises:
        ArgumentError: for anything else; a `ValueError`.
    """
    if isinstance(rate, bool) or not isinstance(rate, (int, float, np.floating)) or not 0 <= rate <= 1:
        raise ArgumentError(f"rate is a number from 0 to 1, not {shown(rate)}: give rate=0.5")
    return float(rate)


def rate_below_one(name: str, rate: Any) -> float:
    """A probability that leaves something over.

    Args:
        name: its name.
        rate: a number from 0 to below 1.

    Raises:
        OperandError: for what is not a number; a `TypeError`.
        ArgumentError: for a number outside this range; a `ValueError`.
    """
    return real_within(name, rate, 0, math.nextafter(1, 0), "from 0 to below 1")
