"""Training on several devices: what each computes of its part, and how gradients come together.

Keras RFC 293, mixed precision, "All-reduce dtype" and "All-reducing in float16". All communication is JAX's own.
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
    """Every device trains on its part of each batch, with all weights; gradients are averaged.

    Gradients travel in the dtype that the optimizer and the policy ask for (`docs/distributed.md`): float16 and still
    scaled under `"mixed_float16"`, otherwise in at least float32. A batch that the number of devices does not divide,
    the last one of an epoch say, is computed by every device as a whole.

    Args:
        mesh: the devices, of one axis; None for all there are, of all processes, along an axis called `"data"`.
        batches: `"global"` if every process is given the same data, of which it takes its part, or `"per_process"` if
            each is given data of its own, in batches of one size, which together are the batch.

    Raises:
        OperandError: for anything but a mesh; a `TypeError`.
        ArgumentError: for a mesh of several axes; a `ValueError`.
        UnknownNameError: for other batches; a `ValueError`.

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
        """A function that adds up gradients over the devices, in a replica.

        Args:
            reduce_dtype: what they travel in; None for at least float32.
            shapes: of the variables, by key; those that are cut have been added up in the backward pass.
        """

        def aggregated(gradients: Mapping[str, Any]) -> dict[str, Any]:
            if self.replicas == 1:  # nothing travels
                return dict(gradients)
            whole = {key: each for key, each in gradients.items() if self.spec(shapes[key]) == P()}
            return {**gradients, **replica_sum(whole, self.axis_name, reduce_dtype)}

        return aggregated

    def laid(
        self, values: Mapping[str, jax.Array], shapes: Mapping[str, tuple[int, ...]], reduce_dtype: DType | None
    ) -> dict[str, Any]:
        """What is laid over variables in a replica.

        Args:
            values: what the device has of each, by key.
            shapes: of the variables.
            reduce_dtype: as for `aggregate`.
        """
        made: dict[str, Any] = {}
        for key, value in values.items():
            spec = self.spec(shapes[key])
            axis = len(spec) - 1 if len(spec) else None
            gather = None if axis is None else _gathering(self.axis_name, axis, reduce_dtype)
            made[key] = value if gather is None else Shard(value, shapes[key], gather)
        return made

    def on_each_device(
        self, backward: Callable[..., Any], *, keeps_gradients_apart: bool = False
    ) -> Callable[..., Any]:
        """A function of a whole batch that runs one of a part of it on each device.

        Args:
            backward: a function of the optimizer's state, trainable and other values, a batch and the data of a random
                key, or None, which gives a loss, other values and outputs of its part, and aggregated gradients.
            keeps_gradients_apart: whether gradients are not aggregated, and get a first axis for those of each device.

        Returns:
            Such a function of the whole, whose loss is the mean; so are floating values that are not trainable, and
            outputs are one after the other.
        """

        def distributed(optimizer: Any, trainable: Any, other: Any, batch: Any, key: Any) -> Any:
            is_cut = self.divides(examples_in(batch))

            def local(optimizer: Any, trainable: Any, other: Any, batch: Any, key: Any) -> Any:
                if key is not None and is_cut and self.replicas > 1:  # what is random differs from part to part
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
                # Loops of a user's layer start from zeros that are the same everywhere, and go on with what is not:
                # with the check on JAX refuses them. Nothing here is differentiated from outside.
                check_vma=False,
            )(optimizer, trainable, other, batch, key)
            value, after, outputs, gradients = made
            return value, after, jax.tree.map(_one_after_the_other if is_cut else itemgetter(0), outputs), gradients

        return distributed

    def mean_of_apart(self, mean: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """A function of gradients that were kept apart, and of a state, that runs one of the gradients of each device.

        Args:
            mean: a function of one device's gradients and the state that gives what all have together.
        """

        def local(apart: Any, state: Any) -> Any:
            return mean(jax.tree.map(itemgetter(0), apart), state)

        return jax.shard_map(local, mesh=self.mesh, in_specs=(P(self.axis_name), P()), out_specs=P(), check_vma=False)

    def scope(self) -> AbstractContextManager[None]:
        """The time in which `minimize`, `get_gradients` and `apply_gradients` of optimizers work on these devices.

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
            return lax.pmax(leaf, self.axis_name)  # such as a count, the same everywhere

        return jax.tree.map(mean, tree)


class FullyShardedDataParallel(DataParallel):
    """As `DataParallel`, with variables and what the optimizer keeps for them cut into a piece for each device.

    A variable is put together when a layer reads it, in the dtype that it is read in, and its gradient is added up and
    cut again in one step, a reduce-scatter (Rajbhandari and others, 2020, "ZeRO: Memory Optimizations Toward Training
    Trillion Parameter Models", stage 3). Each is cut along its longest axis that the number of devices divides.

    Args:
        mesh: as for `DataParallel`.
        batches: likewise.
        smallest: variables of fewer elements stay whole on every device.

    >>> FullyShardedDataParallel(smallest=100).smallest
    100
    """

    def __init__(self, mesh: Mesh | None = None, *, batches: str = "global", smallest: int = 1024) -> None:
        super().__init__(mesh, batches=batches)
        self.smallest = positive_int("smallest", smallest)

    def scope(self) -> AbstractContextManager[None]:
        """Refused: `minimize` has whole variables on every device.

        Raises:
            ArgumentError: always; a `ValueError`.
        """
        raise ArgumentError("minimize needs whole variables on every device; use DataParallel().scope(), or fit")

    def spec(self, shape: tuple[int, ...]) -> P:
        """How variables, and what optimizers keep for them, are cut."""
        lengths = [length if length % self.replicas == 0 else 0 for length in shape]
        if self.replicas == 1 or not max(lengths, default=0) or np.prod(shape) < self.smallest:
            return P()
        axis = lengths.index(max(lengths))
        return P(*(None,) * axis, self.axis_name)


def _one_after_the_other(leaf: jax.Array) -> jax.Array:
    """The outputs of all parts, which had an axis of their own; what has no examples is that of the first part."""
    return leaf[0] if leaf.ndim == 1 else leaf.reshape(-1, *leaf.shape[2:])


def _gathering(axis_name: str, axis: int, reduce_dtype: DType | None) -> Callable[[jax.Array, DType], jax.Array]:
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
