"""Weight initializers: those of `jax.nn.initializers`, and which of them layers take unless told otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax

from supremum.formats import DType

Initializer: TypeAlias = Callable[[jax.Array, tuple[int, ...], DType], Any]
"""A function of a random key, a shape and a dtype that gives an array."""


@dataclass(frozen=True)
class JaxInitializer:
    """One that JAX makes, by what it is made of: it can be pickled, as the function that JAX makes cannot.

    Args:
        name: the function of `jax.nn.initializers` that makes it.
        options: what that is given, as pairs of a name and a value.
    """

    name: str
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, key: jax.Array, shape: tuple[int, ...], dtype: DType) -> Any:
        """The first values of a weight."""
        return getattr(jax.nn.initializers, self.name)(**dict(self.options))(key, shape, dtype)


GLOROT_UNIFORM: Initializer = JaxInitializer("glorot_uniform")
LECUN_NORMAL: Initializer = JaxInitializer("lecun_normal")
ONES: Initializer = jax.nn.initializers.ones
ZEROS: Initializer = jax.nn.initializers.zeros
ROWS_OF_UNIT_NORM: Initializer = JaxInitializer(
    "variance_scaling",
    (("scale", 1.0), ("mode", "fan_in"), ("distribution", "normal"), ("in_axis", 1), ("out_axis", 0)),
)
"""For tables of embeddings: normal numbers of which a row has a norm of about 1, whatever the number of rows."""
