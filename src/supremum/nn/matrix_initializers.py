"""Initializers of kernels of any axes, made from those of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from supremum.formats import DType
from supremum.nn.initializers import Initializer


def of_matrices(
    initializer: Initializer, *, batch: Sequence[int] = (), inputs: Sequence[int], outputs: Sequence[int]
) -> Initializer:
    """An initializer that draws the matrices that a kernel consists of.

    Those of `jax.nn.initializers` take the last two axes for inputs and outputs of a layer, and all others for a
    window: of a kernel with several axes of inputs or outputs they would get the scale wrong.

    Args:
        initializer: for matrices, shape (inputs, outputs).
        batch: the kernel's axes along which there is one matrix beside the other.
        inputs: its axes that are summed over.
        outputs: its axes that the result has.

    Returns:
        An initializer for the kernel.

    >>> kernel = of_matrices(jax.nn.initializers.orthogonal(), inputs=(0, 1), outputs=(2,))
    >>> weights = kernel(jax.random.key(0), (2, 3, 6), jnp.dtype("float32")).reshape(6, 6)
    >>> bool(jnp.allclose(weights @ weights.T, jnp.eye(6), atol=1e-6))
    True
    """
    return _OfMatrices(initializer, tuple(batch), tuple(inputs), tuple(outputs))


@dataclass(frozen=True)
class _OfMatrices:
    """What `of_matrices` gives; unlike a function that is made there it can be pickled."""

    initializer: Initializer
    batch: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def __call__(self, key: jax.Array, shape: tuple[int, ...], dtype: DType) -> Any:
        sizes = [tuple(shape[axis] for axis in axes) for axes in (self.batch, self.inputs, self.outputs)]
        count, rows, columns = map(math.prod, sizes)

        def matrix(key: jax.Array) -> Any:
            return self.initializer(key, (rows, columns), dtype)

        drawn = jax.vmap(matrix)(jax.random.split(key, count)) if self.batch else matrix(key)
        reshaped = jnp.reshape(drawn, sum(sizes, ()))
        return jnp.moveaxis(reshaped, range(len(shape)), (*self.batch, *self.inputs, *self.outputs))
