"""Weight initializers: those of `jax.nn.initializers`, adapted to kernels with any axes or several gates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from supremum.formats import DType, at_least_float32

Initializer: TypeAlias = Callable[[jax.Array, tuple[int, ...], DType], Any]
"""A function of a random key, a shape and a dtype that returns an array."""


@dataclass(frozen=True)
class JaxInitializer:
    """An initializer of JAX as a name and options; it can be pickled, while JAX's function cannot.

    Args:
        name: the name of the function in `jax.nn.initializers`.
        options: the arguments of that function, as pairs of a name and a value.
    """

    name: str
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, key: jax.Array, shape: tuple[int, ...], dtype: DType) -> Any:
        """The initial values of a weight."""
        return getattr(jax.nn.initializers, self.name)(**dict(self.options))(key, shape, dtype)


GLOROT_UNIFORM: Initializer = JaxInitializer("glorot_uniform")
LECUN_NORMAL: Initializer = JaxInitializer("lecun_normal")
ONES: Initializer = jax.nn.initializers.ones
ZEROS: Initializer = jax.nn.initializers.zeros
ROWS_OF_UNIT_NORM: Initializer = JaxInitializer(
    "variance_scaling",
    (("scale", 1.0), ("mode", "fan_in"), ("distribution", "normal"), ("in_axis", 1), ("out_axis", 0)),
)
"""Normal numbers for embedding tables: each row has a norm of about 1, whatever the number of rows."""


def orthogonal(key: jax.Array, shape: tuple[int, ...], dtype: DType) -> jax.Array:
    """An orthogonal matrix, which preserves the norm of a state (Saxe and others, 2014).

    Args:
        key: a key of `jax.random`.
        shape: two axes or more.
        dtype: its dtype; the matrix is computed in at least float32, since JAX cannot decompose narrower ones.
    """
    return jax.nn.initializers.orthogonal()(key, shape, at_least_float32(dtype)).astype(dtype)


@dataclass(frozen=True)
class MatrixInitializer:
    """An initializer for kernels that consist of matrices.

    The initializers of `jax.nn.initializers` take the last two axes as inputs and outputs of a layer, and all others as
    a window. They would get the scale wrong for a kernel with several input or output axes.

    Args:
        initializer: for a matrix, shape (inputs, outputs).
        inputs: the kernel axes that are summed over.
        outputs: the kernel axes that the result keeps.
        batch: the kernel axes with a separate matrix for each index.

    >>> kernel = MatrixInitializer(
    ...     jax.nn.initializers.orthogonal(), inputs=(0, 1), outputs=(2,)
    ... )
    >>> weights = kernel(jax.random.key(0), (2, 3, 6), jnp.dtype("float32"))
    >>> weights = weights.reshape(6, 6)
    >>> bool(jnp.allclose(weights @ weights.T, jnp.eye(6), atol=1e-6))
    True
    """

    initializer: Initializer
    inputs: Sequence[int]
    outputs: Sequence[int]
    batch: Sequence[int] = ()

    def __call__(self, key: jax.Array, shape: tuple[int, ...], dtype: DType) -> Any:
        """The initial values of a kernel."""
        sizes = [tuple(shape[axis] for axis in axes) for axes in (self.batch, self.inputs, self.outputs)]
        count, rows, columns = map(math.prod, sizes)

        def matrix(key: jax.Array) -> Any:
            return self.initializer(key, (rows, columns), dtype)

        drawn = jax.vmap(matrix)(jax.random.split(key, count)) if self.batch else matrix(key)
        reshaped = jnp.reshape(drawn, sum(sizes, ()))
        return jnp.moveaxis(reshaped, range(len(shape)), (*self.batch, *self.inputs, *self.outputs))


@dataclass(frozen=True)
class GateInitializer:
    """An initializer for kernels with several gates side by side, which initializes each gate separately.

    Args:
        initializer: for one gate.
        gates: the number of gates along the last axis.
    """

    initializer: Initializer
    gates: int

    def __call__(self, key: jax.Array, shape: tuple[int, ...], dtype: DType) -> jax.Array:
        """The initial values of a kernel."""
        part, keys = (*shape[:-1], shape[-1] // self.gates), jax.random.split(key, self.gates)
        return jnp.concatenate([self.initializer(each, part, dtype) for each in keys], axis=-1)
