"""Compensated float32 sums: a second number keeps what rounding loses.

A plain float32 sum of ones stops at 2**24. Here the error of each addition is known exactly (Knuth, "The Art of
Computer Programming", volume 2, 4.2.2, theorem B) and summed in a second number: counts are exact up to 2**48.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Sum(NamedTuple):
    """A sum in two parts, both float32 scalars.

    Args:
        value: the sum, rounded.
        error: what must be added to `value` for the exact sum.
    """

    value: jax.Array
    error: jax.Array


def zero() -> Sum:
    """Return an empty sum in new buffers, which may be donated."""
    return Sum(jnp.zeros((), "float32"), jnp.zeros((), "float32"))


def plus(total: Sum, value: Any) -> Sum:
    """Add a number to a sum.

    Args:
        total: the sum before.
        value: a scalar.

    >>> total = plus(plus(zero(), 2.0**24), 1.0)
    >>> float(total.value), float(total.error)
    (16777216.0, 1.0)
    """
    value = jnp.asarray(value, "float32")
    new = total.value + value
    part = new - total.value
    lost = (total.value - (new - part)) + (value - part)
    nothing = jnp.zeros_like(lost)
    error = jnp.where(jnp.isfinite(new), total.error + lost, nothing)  # an infinite sum has no error
    # Move the error into the sum as far as the sum can hold it, so that the error stays small.
    whole = new + error
    return Sum(whole, jnp.where(jnp.isfinite(whole), error - (whole - new), nothing))


def plus_count(total: Sum, count: Any) -> Sum:
    """Add a whole number to a sum; the number may have more digits than float32.

    Args:
        total: the sum before.
        count: a Python integer or a JAX integer scalar, at least 0.
    """
    if isinstance(count, int):
        low = count % 2**12
        return plus(plus(total, float(count - low)), float(low))
    count = jnp.asarray(count)
    low = count & (2**12 - 1)
    return plus(plus(total, (count - low).astype("float32")), low.astype("float32"))


def quotient(total: Sum, count: Sum) -> jax.Array:
    """Divide one sum by another; the result is a float32 scalar, 0 if the divisor is 0."""
    divisor = count.value + count.error
    is_empty = divisor == 0
    safe = jnp.where(is_empty, jnp.ones_like(divisor), divisor)
    return jnp.where(is_empty, jnp.zeros_like(safe), (total.value + total.error) / safe)
