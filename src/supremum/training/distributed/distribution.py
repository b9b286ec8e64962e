"""Training on several devices: where arrays go, what each device computes, and how gradients are combined.

Keras RFC 293, mixed precision, "All-reduce dtype" and "All-reducing in float16". JAX does all communication.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from operator import itemgetter
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from supremum.argument_checks import chosen
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType, as_format
from supremum.mixed_precision import keep_64_bits, replica_sum, widen
from supremum.nn import Shard
from supremum.nn.functional import positive_int
from supremum.optimizers import across
from supremum.training.data import Batch, Rows
from supremum.training.losses import replicas

_AXIS = "data"
"""The mesh axis that batches are split over if no mesh is given."""


class DataParallel:
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
    >>> history = model.fit(
    ...     np.ones((8, 3), "float32"), np.ones((8, 1), "float32"), epochs=2, verbose=0
    ... )
    >>> history.history["loss"][1] < history.history["loss"][0]
    True
    """

    def __init__(self, mesh: Mesh | None = None, *, batches: str = "global") -> None:
        if mesh is not None and not isinstance(mesh, Mesh):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(
                f"mesh must be a jax.sharding.Mesh, got {shown(mesh)}: use jax.make_mesh((4,), ('data',))"
            )
        if mesh is not None and len(mesh.axis_names) != 1:
            names = ", ".join(mesh.axis_names)
            raise ArgumentError(
                f"the mesh must have one axis, got {names}: give jax.make_mesh(({mesh.size},), ('{_AXIS}',))"
            )
        chosen("batches", batches, ("global", "per_process"))
        self._given = mesh
        self.batches = batches

    @cached_property
    def mesh(self) -> Mesh:
        """The devices, looked up on first use."""
        devices = np.asarray(jax.devices()) if self._given is None else self._given.devices
        names = (_AXIS,) if self._given is None else self._given.axis_names
        return Mesh(devices, names, axis_types=(AxisType.Auto,))

    @property
    def axis_name(self) -> str:
        """The mesh axis that batches are split over."""
        return self.mesh.axis_names[0]

    @property
    def replicas(self) -> int:
        """The number of devices."""
        return self.mesh.size

    def spec(self, shape: tuple[int, ...]) -> P:  # noqa: ARG002 (for overrides)
        """The partition of a variable and of its optimizer state.

        Args:
            shape: the shape of the variable.
        """
        return P()

    def specs(self, tree: Any) -> Any:
        """Return the `spec` of each array."""

        def spec(leaf: Any) -> P:
            return self.spec(np.shape(leaf))

        return jax.tree.map(spec, tree)

    def placed(self, tree: Any, *, whole: bool = False) -> Any:
        """Put arrays on their devices; arrays that are there already are returned as they are.

        Args:
            tree: a tree of arrays, the same on all processes.
            whole: whether every device gets the whole of each array; otherwise they are placed as variables and
                optimizer state are.
        """

        def put(leaf: Any) -> jax.Array:
            target = NamedSharding(self.mesh, P() if whole else self.spec(np.shape(leaf)))
            if isinstance(leaf, jax.Array) and leaf.sharding.is_equivalent_to(target, leaf.ndim):
                return leaf
            if jax.process_count() == 1:
                return jax.device_put(keep_64_bits(leaf), target)
            return _from_host(target, np.asarray(leaf))

        return jax.tree.map(put, tree)

    def held(self, tree: Any) -> Any:
        """Constrain traced arrays to the placement of variables.

        Args:
            tree: a tree of arrays.
        """
        return lax.with_sharding_constraint(tree, jax.tree.map(partial(NamedSharding, self.mesh), self.specs(tree)))

    def everywhere(self, tree: Any) -> Any:
        """Constrain traced arrays to be whole on every device.

        Args:
            tree: a tree of arrays.
        """
        return lax.with_sharding_constraint(tree, NamedSharding(self.mesh, P()))

    # Batches

    def rows(self, part: Rows, start: int, count: int) -> Batch:
        """Select consecutive batches, stacked along a new first axis and split along their examples.

        Args:
            part: the batches.
            start: the index of the first batch.
            count: the number of batches.
        """
        chosen = part.order[start : start + count]
        if self._is_per_process:
            return self._parts(part.block(start, count), axis=1)
        sharding = self._cut(chosen.shape[1], axis=1)

        def put(leaf: Any) -> jax.Array:
            def part(place: Any) -> Any:
                return keep_64_bits(leaf[chosen[place[:2]]])

            return jax.make_array_from_callback((*chosen.shape, *leaf.shape[1:]), sharding, part)

        return jax.tree.map(put, part.data)

    def batch(self, batch: Any) -> Any:
        """Split a batch along its examples.

        Args:
            batch: the whole batch, or this process's part; every device gets all arrays without axes.

        Raises:
            ArgumentError: if the arrays have different numbers of examples; a `ValueError`.
        """
        host = jax.tree.map(np.asarray, batch)
        lengths = sorted({leaf.shape[0] for leaf in jax.tree.leaves(host) if leaf.ndim})
        if len(lengths) > 1:
            raise ArgumentError(
                f"all arrays of a batch must have the same number of examples, got {', '.join(map(str, lengths))}; "
                "close over what is not part of the batch, as an nn.Variable if it changes"
            )
        if self._is_per_process:
            return self._parts(host, axis=0)
        cut, whole = self._cut(examples_in(host), axis=0), NamedSharding(self.mesh, P())

        def put(leaf: Any) -> jax.Array:
            return _from_host(cut if leaf.ndim else whole, leaf)

        return jax.tree.map(put, host)

    def check_steps(self, steps: int | None) -> None:
        """Raise if the processes have different numbers of batches in an epoch: some would wait forever.

        Args:
            steps: the number of batches in this process; None if it is not known.

        Raises:
            ArgumentError: if the numbers differ; a `ValueError`.
        """
        if not self._is_per_process:
            return
        told = multihost_utils.process_allgather(np.int32(-1 if steps is None else steps)).tolist()
        if len(set(told)) > 1:
            each = ", ".join("unknown" if count < 0 else str(count) for count in told)
            raise ArgumentError(
                f"the processes have {each} batches an epoch, but must have the same number; set "
                f"steps_per_epoch={max(1, min(told))}, or data of one length"
            )

    @property
    def _is_per_process(self) -> bool:
        return self.batches == "per_process" and jax.process_count() > 1

    def _cut(self, examples: int, axis: int) -> NamedSharding:
        is_cut = self.divides(examples)
        return NamedSharding(self.mesh, P(*(None,) * axis, self.axis_name) if is_cut else P())

    def divides(self, examples: int) -> bool:
        """Whether a batch can be split into equal parts; if not, every device computes the whole batch.

        Args:
            examples: the number of examples in the batch of all processes.
        """
        return examples % self.replicas == 0

    def _parts(self, batch: Batch, axis: int) -> Batch:
        """Place this process's part of batches on its devices."""
        here = self.mesh.local_mesh.size
        examples = next((leaf.shape[axis] for leaf in jax.tree.leaves(batch) if leaf.ndim > axis), 0)
        if examples % here:
            raise ArgumentError(
                f"process {jax.process_index()} gave a batch of {examples} examples to its {here} devices, but each "
                f"must get the same number; use batches of {examples // here * here or here}, and drop the last"
            )
        cut, whole = NamedSharding(self.mesh, P(*(None,) * axis, self.axis_name)), NamedSharding(self.mesh, P())

        def put(leaf: Any) -> jax.Array:
            return jax.make_array_from_process_local_data(cut if leaf.ndim > axis else whole, leaf)

        return jax.tree.map(put, batch)

    # Computation

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
        made: dict[str, Any] = dict(values)
        for key, value in values.items():
            spec = self.spec(shapes[key])
            if len(spec):
                gather = _gather_function(self.axis_name, len(spec) - 1, reduce_dtype)
                made[key] = Shard(value, shapes[key], gather)
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
                mean = jax.tree.map(partial(_mean, self.axis_name), (value, after))
                if keeps_gradients_apart:
                    gradients = jax.tree.map(itemgetter(None), gradients)
                return *mean, jax.tree.map(itemgetter(None), outputs), gradients

            def spec_of_batch(leaf: Any) -> P:
                return P(self.axis_name) if is_cut and np.ndim(leaf) else P()

            cut = self.specs(trainable)
            made = jax.shard_map(
                local,
                mesh=self.mesh,
                in_specs=(self.specs(optimizer), cut, P(), jax.tree.map(spec_of_batch, batch), P()),
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._given!r}, batches={self.batches!r})"


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
        self.smallest: int = positive_int("smallest", smallest)

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


def _mean(axis_name: str, leaf: jax.Array) -> jax.Array:
    if as_format(leaf.dtype).is_inexact:
        return lax.pmean(widen(leaf), axis_name).astype(leaf.dtype)
    return lax.pmax(leaf, axis_name)  # such as a count, which is the same on all devices


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


def examples_in(batch: Any) -> int:
    """The number of examples in a batch: the length of the first axis of its arrays."""
    return next((np.shape(leaf)[0] for leaf in jax.tree.leaves(batch) if np.ndim(leaf)), 0)


def _from_host(sharding: NamedSharding, leaf: np.ndarray[Any, Any]) -> jax.Array:
    return jax.make_array_from_callback(leaf.shape, sharding, lambda place: keep_64_bits(leaf[place]))
