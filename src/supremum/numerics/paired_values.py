"""Values of the narrow run of a program beside those of its float64 reference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from supremum.formats import as_format
from supremum.numerics.widening import FLOAT64, in_dtype, is_floating
from supremum.typing import SupportsDType


@partial(jax.tree_util.register_dataclass, data_fields=["narrow", "wide", "error"], meta_fields=[])
@dataclass(frozen=True, slots=True)
class Pair:
    """A value in both runs.

    Args:
        narrow: the value of the narrow run.
        wide: the value of the reference; None if it is the same number.
        error: the first-order prediction of how far the narrow value is from the reference; None if it is zero.
    """

    narrow: Any
    wide: Any = None
    error: Any = None

    @property
    def reference(self) -> Any:
        """The value of the reference."""
        return in_dtype(self.narrow, FLOAT64) if self.wide is None else self.wide

    @property
    def middle(self) -> Any:
        """The midpoint of both runs."""
        return self.reference if self.wide is None else self.wide + difference(self.narrow, self.wide) / 2


def is_key(value: SupportsDType) -> bool:
    """Whether a value is a random key."""
    return jnp.issubdtype(value.dtype, jax.dtypes.extended)


def full(pair: Pair) -> Pair:
    """A value with all of its parts, so that it has the same structure in every iteration."""
    if is_key(pair.narrow):
        return Pair(pair.narrow)
    if not is_floating(pair.narrow):
        return Pair(pair.narrow, pair.reference)
    error = lax.full_like(pair.reference, 0) if pair.error is None else pair.error
    return Pair(pair.narrow, pair.reference, error)


def _finite(value: jax.Array) -> jax.Array:
    """A value in float64, with the largest number of its format in place of infinity."""
    wide, largest = in_dtype(value, FLOAT64), float(as_format(value.dtype).max)
    is_complex = jnp.issubdtype(wide.dtype, jnp.complexfloating)
    return wide if wide.dtype == value.dtype or is_complex else lax.clamp(-largest, wide, largest)


def where_finite(value: jax.Array) -> jax.Array:
    """A value with zero in place of infinities and NaNs."""
    return lax.select(lax.is_finite(jnp.real(value)), value, lax.full_like(value, 0))


def difference(narrow: jax.Array, wide: jax.Array) -> jax.Array:
    """How far a narrow value is from the reference.

    Infinities count as the largest number of the format, and what is unknown as zero.
    """
    return where_finite(_finite(narrow) - wide)


def magnitude(value: jax.Array) -> jax.Array:
    """A value without its complex phase; the sign of a real value stays, because the result is squared."""
    return value if value.dtype == FLOAT64 else jnp.abs(value)
