"""Variables that each device has a piece of, put together and their gradients cut again."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import lax

from supremum.formats import DType
from supremum.mixed_precision import widen


def gathering(axis_name: str, axis: int, reduce_dtype: DType | None) -> Callable[[jax.Array, DType], jax.Array]:
    """What puts the pieces of a variable together, and adds up its gradient and cuts it.

    Args:
        axis_name: the axis of the mesh that the devices lie along.
        axis: the axis of the variable that is cut.
        reduce_dtype: what the gradient travels in, by a reduce-scatter; None for at least float32.

    Returns:
        A function of a piece, and of the dtype to cast it to before it travels, that gives the whole; runs in
        `jax.shard_map`.
    """

    def gather(local: jax.Array, dtype: DType) -> jax.Array:
        wide = widen(local).dtype

        @jax.custom_vjp
        def gathered(local: jax.Array) -> jax.Array:
            return lax.all_gather(local.astype(dtype), axis_name, axis=axis, tiled=True)

        def forward(local: jax.Array) -> tuple[jax.Array, None]:
            return gathered(local), None

        def backward(_: None, gradient: jax.Array) -> tuple[jax.Array]:
            part = gradient.astype(wide if reduce_dtype is None else reduce_dtype)
            summed = lax.psum_scatter(part, axis_name, scatter_dimension=axis, tiled=True)
            return (summed.astype(local.dtype),)

        gathered.defvjp(forward, backward)
        return gathered(local)

    return gather
