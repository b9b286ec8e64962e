"""Weight initialisers: those of `jax.nn.initializers`, and which of them layers take unless told otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax

from supremum.formats import DType

Initializer: TypeAlias = Callable[[jax.Array, tuple[int, ...], DType], Any]
"""A function of a random key, a shape and a dtype that gives an array."""

GLOROT_UNIFORM: Initializer = jax.nn.initializers.glorot_uniform()
LECUN_NORMAL: Initializer = jax.nn.initializers.lecun_normal()
ONES: Initializer = jax.nn.initializers.ones
ZEROS: Initializer = jax.nn.initializers.zeros
ROWS_OF_UNIT_NORM: Initializer = jax.nn.initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=1, out_axis=0)
"""For tables of embeddings: normal numbers of which a row has a norm of about 1, whatever the number of rows."""
