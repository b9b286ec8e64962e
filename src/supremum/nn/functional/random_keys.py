"""Random keys of `jax.random` and their seeds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from supremum.argument_checks import whole_number


def is_key(key: Any) -> bool:
    """Whether a value is a single key of `jax.random`, typed or raw."""
    if not isinstance(key, jax.Array):
        return False
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key.ndim == 0
    return key.dtype == "uint32" and key.ndim == 1  # a raw key of `jax.random.PRNGKey`


def as_key(seed: Any) -> jax.Array:
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
