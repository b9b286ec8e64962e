"""Weight initializers: those of `jax.nn.initializers`, adapted to kernels with any axes or several gates; names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from supremum.formats import DType, at_least_float32
from supremum.nn.named_options import as_option

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


def random_uniform(key: jax.Array, shape: tuple[int, ...], dtype: DType) -> jax.Array:
    """Uniform numbers from -0.05 to 0.05, as Keras' initializer of this name.

    Args:
        key: a key of `jax.random`.
        shape: the shape.
        dtype: its dtype.
    """
    return jax.random.uniform(key, shape, dtype, -0.05, 0.05)


def identity(key: jax.Array, shape: tuple[int, ...], dtype: DType) -> jax.Array:
    """A matrix with ones on its diagonal.

    Args:
        key: not used.
        shape: two axes.
        dtype: its dtype.
    """
    del key
    return jnp.eye(*shape, dtype=dtype)


_STDDEV = (("stddev", 0.05),)
NAMED: dict[str, Initializer] = {
    **{
        name: JaxInitializer(name)
        for name in ("glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform")
    },
    "identity": identity,
    "ones": ONES,
    "orthogonal": orthogonal,
    "random_normal": JaxInitializer("normal", _STDDEV),
    "random_uniform": random_uniform,
    "truncated_normal": JaxInitializer("truncated_normal", _STDDEV),
    "zeros": ZEROS,
}
"""Initializers by the names of Keras, with Keras' default options."""


def as_initializer(initializer: object) -> Initializer:
    """Convert a name to an initializer; return a function as it is.

    Args:
        initializer: a function of a random key, a shape and a dtype; or a name, such as `"he_normal"`.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.
        OperandError: for anything else; a `TypeError`.

    >>> as_initializer("ones")(jax.random.key(0), (2,), jnp.dtype("float16"))
    Array([1., 1.], dtype=float16)
    """
    return as_option("initializer", initializer, NAMED, "'glorot_uniform', or jax.nn.initializers.normal(0.02)")


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
