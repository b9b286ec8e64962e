"""Data parallelism with variables and optimizer state sharded over the replicas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from supremum.errors import ArgumentError
from supremum.formats import DType
from supremum.mixed_precision import widen
from supremum.nn import Shard
from supremum.nn.functional import positive_int
from supremum.training.distributed.distribution import DataParallel
from supremum.training.distributed.layout import names_in, without_trailing_none


class FullyShardedDataParallel(DataParallel):
    """Data parallelism with variables and optimizer state sharded over the replicas.

    A layer that reads a variable gathers its shards, in the dtype that the layer reads. The gradient is summed and
    sharded again in one step, a reduce-scatter (Rajbhandari and others, 2020, "ZeRO: Memory Optimizations Toward
    Training Trillion Parameter Models", stage 3). Each variable is sharded along the longest axis that the number of
    replicas divides and that the layout does not split.

    Args:
        mesh: as for `DataParallel`.
        data_axes: as for `DataParallel`.
        layout: as for `DataParallel`.
        batches: as for `DataParallel`.
        smallest: variables with fewer elements stay whole in every replica.

    >>> FullyShardedDataParallel(smallest=100).smallest
    100
    """

    def __init__(
        self,
        mesh: Mesh | None = None,
        *,
        data_axes: str | Sequence[str] | None = None,
        layout: Mapping[str, P | Sequence[Any]] | None = None,
        batches: str = "global",
        smallest: int = 1024,
    ) -> None:
        super().__init__(mesh, data_axes=data_axes, layout=layout, batches=batches)
        self.smallest: int = positive_int("smallest", smallest)

    def scope(self) -> AbstractContextManager[None]:
        """Not supported: `minimize` needs whole variables on every device.

        Raises:
            ArgumentError: always; a `ValueError`.
        """
        raise ArgumentError("minimize needs whole variables on every device; use DataParallel().scope(), or fit")

    def replica_values(
        self, values: Mapping[str, jax.Array], shapes: Mapping[str, tuple[int, ...]], reduce_dtype: DType | None
    ) -> dict[str, Any]:
        """Replace this replica's parts of variables by `Shard`s, which are gathered when they are read."""
        shards: dict[str, Any] = dict(values)
        for key, value in values.items():
            axis = self.split_axis(shapes[key], key)
            if axis is not None:
                gather = _gather_function(self.axis_name, axis, reduce_dtype, super().spec(shapes[key], key))
                shards[key] = Shard(value, shapes[key], gather)
        return shards

    def spec(self, shape: tuple[int, ...], path: str = "") -> P:
        """The partition of a variable or of a slot of an optimizer."""
        own = super().spec(shape, path)
        parts = [*tuple(own), *(None,) * (len(shape) - len(own))]
        lengths = [
            length if part is None and length % self.replicas == 0 else 0
            for length, part in zip(shape, parts, strict=True)
        ]
        if self.replicas == 1 or not max(lengths, default=0) or np.prod(shape) < self.smallest:
            return own
        parts[lengths.index(max(lengths))] = self.axis_name
        return without_trailing_none(parts)


def _gather_function(
    axis_name: str | tuple[str, ...], axis: int, reduce_dtype: DType | None, own: P
) -> Callable[[jax.Array, DType], jax.Array]:
    """Return the function that gathers the shards of a variable; its derivative sums and shards the gradient.

    Args:
        axis_name: the mesh axis of the replicas, or a tuple of several.
        axis: the axis along which the variable is sharded.
        reduce_dtype: the dtype of the gradient in the reduce-scatter; None for at least float32.
        own: the partition of the variable over the model axes.

    Returns:
        A function of a shard and of the dtype to cast it to before it is sent. It returns the whole variable, and runs
        in `jax.shard_map`.
    """
    gather_parts = partial(lax.all_gather, axis_name=axis_name, axis=axis, tiled=True)
    sum_parts = partial(lax.psum_scatter, axis_name=axis_name, scatter_dimension=axis, tiled=True)
    if names := names_in(own):
        # XLA would first gather the pieces of a replica: it does not partition all-gathers and reduce-scatters.
        on_pieces = partial(jax.shard_map, in_specs=own, out_specs=own, axis_names=names, check_vma=False)
        gather_parts, sum_parts = on_pieces(gather_parts), on_pieces(sum_parts)

    def gather(local: jax.Array, dtype: DType) -> jax.Array:
        wide = widen(local).dtype

        @jax.custom_vjp
        def gathered(local: jax.Array) -> jax.Array:
            return gather_parts(local.astype(dtype))

        def forward(local: jax.Array) -> tuple[jax.Array, None]:
            return gathered(local), None

        def backward(_: None, gradient: jax.Array) -> tuple[jax.Array]:
            part = gradient.astype(wide if reduce_dtype is None else reduce_dtype)
            return (sum_parts(part).astype(local.dtype),)

        gathered.defvjp(forward, backward)
        return gathered(local)

    return gather
