"""Training on several devices: what each device computes, and how gradients are combined.

Keras RFC 293, mixed precision, "All-reduce dtype" and "All-reducing in float16". JAX does all communication.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from supremum.errors import ArgumentError
from supremum.formats import DType, as_format
from supremum.mixed_precision import replica_sum, widen
from supremum.nn import Shard
from supremum.nn.functional import positive_int
from supremum.optimizers import across
from supremum.training.distributed.placement import Placement, examples_in
from supremum.training.losses import replicas


class DataParallel(Placement):
    """Data parallelism: every device has all weights and trains on its part of each batch; gradients are averaged.

    Gradients are sent in the dtype that the optimizer and the policy ask for (`docs/distributed.md`): float16 and still
    scaled under `"mixed_float16"`, otherwise at least float32. If the number of devices does not divide a batch, such
    as the last one of an epoch, every device computes the whole batch.

    Args:
        mesh: the devices, with one axis; None for all devices of all processes, along an axis called `"data"`.
        batches: `"global"` if every process gets the same data and takes its part of it, or `"per_process"` if every
            process gets different data, in batches of the same size, which together are the batch.

    Raises:
        OperandError: if `mesh` is not a mesh; a `TypeError`.
        ArgumentError: if the mesh has several axes; a `ValueError`.
        UnknownNameError: if `batches` has any other value; a `ValueError`.

    >>> import numpy as np
    >>> from supremum import nn
    >>> from supremum.training import Sequential
    >>> model = Sequential([nn.Dense(1)])
    >>> model.compile("sgd", loss="mse", distribution=DataParallel())
    >>> history = model.fit(np.ones((8, 3), "float32"), np.ones((8, 1), "float32"), epochs=2, verbose=0)
    >>> history.history["loss"][1] < history.history["loss"][0]
    True
    """

    def aggregate(self, reduce_dtype: DType | None, shapes: Mapping[str, tuple[int, ...]]) -> Callable[[Any], Any]:
        """Return a function that sums gradients over the devices, to be called in a replica.

        Args:
            reduce_dtype: the dtype that gradients are sent in; None for at least float32.
            shapes: the shapes of the variables, by key; the backward pass has already summed the gradients of sharded
                variables.
        """

        def aggregated(gradients: Mapping[str, Any]) -> dict[str, Any]:
            if self.replicas == 1:  # nothing to send
                return dict(gradients)
            whole = {key: each for key, each in gradients.items() if self.spec(shapes[key]) == P()}
            return {**gradients, **replica_sum(whole, self.axis_name, reduce_dtype)}

        return aggregated

    def laid(
        self, values: Mapping[str, jax.Array], shapes: Mapping[str, tuple[int, ...]], reduce_dtype: DType | None
    ) -> dict[str, Any]:
        """Return the values that replace the variables' values in a replica.

        Args:
            values: this device's part of each variable, by key.
            shapes: the shapes of the whole variables.
            reduce_dtype: as for `aggregate`.
        """
        made: dict[str, Any] = {}
        for key, value in values.items():
            spec = self.spec(shapes[key])
            axis = len(spec) - 1 if len(spec) else None
            gather = None if axis is None else _gather_function(self.axis_name, axis, reduce_dtype)
            made[key] = value if gather is None else Shard(value, shapes[key], gather)
        return made

    def on_each_device(
        self, backward: Callable[..., Any], *, keeps_gradients_apart: bool = False
    ) -> Callable[..., Any]:
        """Turn a function of part of a batch into a function of the whole batch that runs on all devices.

        Args:
            backward: a function of the optimizer's state, trainable and other values, a batch, and the data of a random
                key or None. It returns the loss, other values and outputs of its part, and aggregated gradients.
            keeps_gradients_apart: whether gradients are not aggregated, but stacked along a new first axis, one entry
                for each device.

        Returns:
            A function of the same arguments for the whole batch. Its loss and non-trainable floating values are means
            over the devices; its outputs are concatenated.
        """

        def distributed(optimizer: Any, trainable: Any, other: Any, batch: Any, key: Any) -> Any:
            is_cut = self.divides(examples_in(batch))

            def local(optimizer: Any, trainable: Any, other: Any, batch: Any, key: Any) -> Any:
                if key is not None and is_cut and self.replicas > 1:  # each part has different random numbers
                    key = jax.random.fold_in(key, lax.axis_index(self.axis_name))
                with replicas(self.axis_name) if is_cut else nullcontext():
                    value, after, outputs, gradients = backward(optimizer, trainable, other, batch, key)
                mean = self._means((value, after))
                if keeps_gradients_apart:
                    gradients = jax.tree.map(itemgetter(None), gradients)
                return *mean, jax.tree.map(itemgetter(None), outputs), gradients

            cut = self.specs(trainable)
            made = jax.shard_map(
                local,
                mesh=self.mesh,
                in_specs=(self.specs(optimizer), cut, P(), self._batch_specs(batch, is_cut), P()),
                out_specs=(P(), P(), P(self.axis_name), P(self.axis_name) if keeps_gradients_apart else cut),
                # A loop in a user's layer may start from zeros, which are the same on all devices, and continue with
                # values that differ; with the check on, JAX refuses that. No caller differentiates through this.
                check_vma=False,
            )(optimizer, trainable, other, batch, key)
            value, after, outputs, gradients = made
            return value, after, jax.tree.map(_concatenated if is_cut else itemgetter(0), outputs), gradients

        return distributed

    def mean_of_apart(self, mean: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Turn a function of one device's gradients into a function of the stacked gradients of all devices.

        Args:
            mean: a function of one device's gradients and a state that returns the mean over all devices.
        """

        def local(apart: Any, state: Any) -> Any:
            return mean(jax.tree.map(itemgetter(0), apart), state)

        return jax.shard_map(local, mesh=self.mesh, in_specs=(P(self.axis_name), P()), out_specs=P(), check_vma=False)

    def scope(self) -> AbstractContextManager[None]:
        """Make optimizers use these devices in a `with` block: `minimize`, `get_gradients` and `apply_gradients`.

        >>> import numpy as np
        >>> from supremum import nn
        >>> from supremum.optimizers import SGD
        >>> w = nn.Variable([1.0], "w")
        >>> def loss_fn(x):
        ...     return ((w.value * x) ** 2).mean()
        >>> with DataParallel().scope():
        ...     loss = SGD(0.25).minimize(loss_fn, w, np.ones(8, "float32"))
        >>> w.value
        Array([0.5], dtype=float32)
        """
        return across(self)

    def _batch_specs(self, batch: Any, is_cut: bool) -> Any:
        def spec(leaf: Any) -> P:
            return P(self.axis_name) if is_cut and np.ndim(leaf) else P()

        return jax.tree.map(spec, batch)

    def _means(self, tree: Any) -> Any:
        def mean(leaf: jax.Array) -> jax.Array:
            if as_format(leaf.dtype).is_inexact:
                return lax.pmean(widen(leaf), self.axis_name).astype(leaf.dtype)
            return lax.pmax(leaf, self.axis_name)  # such as a count, which is the same on all devices

        return jax.tree.map(mean, tree)


class FullyShardedDataParallel(DataParallel):
    """Data parallelism with variables and optimizer state sharded over the devices.

    A layer that reads a variable gathers its shards, in the dtype that the layer reads. The gradient is summed and
    sharded again in one step, a reduce-scatter (Rajbhandari and others, 2020, "ZeRO: Memory Optimizations Toward
    Training Trillion Parameter Models", stage 3). Each variable is sharded along the longest axis that the number of
    devices divides.

    Args:
        mesh: as for `DataParallel`.
        batches: as for `DataParallel`.
        smallest: variables with fewer elements stay whole on every device.

    >>> FullyShardedDataParallel(smallest=100).smallest
    100
    """

    def __init__(self, mesh: Mesh | None = None, *, batches: str = "global", smallest: int = 1024) -> None:
        super().__init__(mesh, batches=batches)
        self.smallest = positive_int("smallest", smallest)

    def scope(self) -> AbstractContextManager[None]:
        """Not supported: `minimize` needs whole variables on every device.

        Raises:
            ArgumentError: always; a `ValueError`.
        """
        raise ArgumentError("minimize needs whole variables on every device; use DataParallel().scope(), or fit")

    def spec(self, shape: tuple[int, ...]) -> P:
        """The partition of a variable and of its optimizer state."""
        lengths = [length if length % self.replicas == 0 else 0 for length in shape]
        if self.replicas == 1 or not max(lengths, default=0) or np.prod(shape) < self.smallest:
            return P()
        axis = lengths.index(max(lengths))
        return P(*(None,) * axis, self.axis_name)


def _concatenated(leaf: jax.Array) -> jax.Array:
    """Concatenate the stacked outputs of all parts; of an output without examples, take the first part's."""
    return leaf[0] if leaf.ndim == 1 else leaf.reshape(-1, *leaf.shape[2:])


def _gather_function(axis_name: str, axis: int, reduce_dtype: DType | None) -> Callable[[jax.Array, DType], jax.Array]:
    """Return the function that gathers the shards of a variable; its derivative sums and shards the gradient.

    Args:
        axis_name: the mesh axis of the devices.
        axis: the axis along which the variable is sharded.
        reduce_dtype: the dtype of the gradient in the reduce-scatter; None for at least float32.

    Returns:
        A function of a shard and of the dtype to cast it to before it is sent. It returns the whole variable, and runs
        in `jax.shard_map`.
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
