"""Training on several devices: where arrays lie, and how gradients come together.

spec/keras-rfc-293-mixed-precision.md, "All-reduce dtype" and "All-reducing in float16". All communication is JAX's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from supremum.errors import ArgumentError, OperandError, UnknownNameError
from supremum.formats import DType, as_format
from supremum.mixed_precision.all_reduce import replica_sum
from supremum.mixed_precision.casting import at_least_float32
from supremum.nn.functional.checks import positive_int
from supremum.nn.shards import Shard
from supremum.optimizers.across import across
from supremum.training.batch import Batch
from supremum.training.data import Rows
from supremum.training.gathering import gathering
from supremum.training.replicas import replicas

AXIS = "data"
"""The axis of the mesh that batches are cut along, where no mesh is given."""
_BATCHES = ("global", "per_process")


class DataParallel:
    """Every device trains on its part of each batch, with all weights; gradients are averaged.

    Gradients travel in the dtype that the optimizer and the policy ask for (`docs/distributed.md`): float16 and still
    scaled under `"mixed_float16"`, otherwise in at least float32. A batch that the number of devices does not divide,
    the last one of an epoch say, is computed by every device as a whole.

    Args:
        mesh: the devices, of one axis; None for all there are, of all processes, along an axis called `"data"`.
        batches: `"global"` if every process is given the same data, of which it takes its part, or `"per_process"` if
            each is given data of its own, in batches of one size, which together are the batch.

    Raises:
        OperandError: for what is no mesh; a `TypeError`.
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

    def __init__(self, mesh: Mesh | None = None, *, batches: str = "global") -> None:
        if mesh is not None and not isinstance(mesh, Mesh):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(f"mesh is a jax.sharding.Mesh, not {mesh!r:.80}: use jax.make_mesh((4,), ('data',))")
        if mesh is not None and len(mesh.axis_names) != 1:
            raise ArgumentError(
                f"the mesh has the axes {', '.join(mesh.axis_names)}, and batches are cut along one: give "
                f"jax.make_mesh(({mesh.size},), ('{AXIS}',))"
            )
        if batches not in _BATCHES:
            raise UnknownNameError("batches", batches, _BATCHES)
        self._given = mesh
        self._mesh: Mesh | None = None
        self.batches = batches

    @property
    def mesh(self) -> Mesh:
        """The devices; they are looked for when they are first needed."""
        if self._mesh is None:
            devices = np.asarray(jax.devices()) if self._given is None else self._given.devices
            names = (AXIS,) if self._given is None else self._given.axis_names
            self._mesh = Mesh(devices, names, axis_types=(AxisType.Auto,))
        return self._mesh

    @property
    def axis_name(self) -> str:
        """The axis that batches are cut along."""
        return self.mesh.axis_names[0]

    @property
    def replicas(self) -> int:
        """How many devices there are."""
        return self.mesh.size

    # Where arrays lie

    def spec(self, shape: tuple[int, ...]) -> P:
        """How variables, and what optimizers keep for them, are cut.

        Args:
            shape: of the variable.
        """
        del shape
        return P()

    def specs(self, tree: Any) -> Any:
        """`spec` of each array."""

        def spec(leaf: Any) -> P:
            return self.spec(np.shape(leaf))

        return jax.tree.map(spec, tree)

    def placed(self, tree: Any, *, whole: bool = False) -> Any:
        """Arrays where they belong; those that are there already are left alone.

        Args:
            tree: of arrays, the same on all processes.
            whole: whether every device has the whole of each; else they are variables, or kept for them.
        """

        def put(leaf: Any) -> jax.Array:
            target = NamedSharding(self.mesh, P() if whole else self.spec(np.shape(leaf)))
            if isinstance(leaf, jax.Array) and leaf.sharding.is_equivalent_to(target, leaf.ndim):
                return leaf
            if jax.process_count() == 1:
                return jax.device_put(leaf, target)
            return _from_host(target, np.asarray(leaf))

        return jax.tree.map(put, tree)

    def held(self, tree: Any) -> Any:
        """Traced arrays that stay where they belong.

        Args:
            tree: of arrays.
        """

        def constrained(leaf: Any) -> jax.Array:
            return lax.with_sharding_constraint(leaf, NamedSharding(self.mesh, self.spec(np.shape(leaf))))

        return jax.tree.map(constrained, tree)

    def everywhere(self, tree: Any) -> Any:
        """Traced arrays that every device has whole.

        Args:
            tree: of arrays.
        """
        return jax.tree.map(partial(_constrained, NamedSharding(self.mesh, P())), tree)

    # Batches

    def rows(self, part: Rows, start: int, count: int) -> Batch:
        """Some batches of arrays, cut along their examples, with a first axis for the batches.

        Args:
            part: which examples of which arrays.
            start: the number of the first batch.
            count: how many.
        """
        chosen = part.order[start : start + count]
        if self._is_per_process:
            return self._parts(part.block(start, count), axis=1)
        sharding = self._cut(chosen.shape[1], axis=1)

        def put(leaf: Any) -> jax.Array:
            def part(place: Any) -> Any:
                return leaf[chosen[place[:2]]]

            return jax.make_array_from_callback((*chosen.shape, *leaf.shape[1:]), sharding, part)

        return jax.tree.map(put, part.data)

    def batch(self, batch: Any) -> Any:
        """A batch, cut along its examples.

        Args:
            batch: the whole of it, or this process's part; what has no axis every device gets.
        """
        host = jax.tree.map(np.asarray, batch)
        if self._is_per_process:
            return self._parts(host, axis=0)
        cut, whole = self._cut(_examples(host), axis=0), NamedSharding(self.mesh, P())

        def put(leaf: Any) -> jax.Array:
            return _from_host(cut if leaf.ndim else whole, leaf)

        return jax.tree.map(put, host)

    def check_steps(self, steps: int | None) -> None:
        """Refuse processes whose epochs have different numbers of batches: one would wait for the others for ever.

        Args:
            steps: how many this process has; None where that is not known.

        Raises:
            ArgumentError: if another has another number; a `ValueError`.
        """
        if not self._is_per_process:
            return
        told = multihost_utils.process_allgather(np.int32(-1 if steps is None else steps)).tolist()
        if len(set(told)) > 1:
            each = ", ".join("unknown" if count < 0 else str(count) for count in told)
            raise ArgumentError(
                f"the processes have {each} batches an epoch, and every step takes all of them: give "
                f"steps_per_epoch={max(1, min(told))}, or data of one length"
            )

    @property
    def _is_per_process(self) -> bool:
        return self.batches == "per_process" and jax.process_count() > 1

    def _cut(self, examples: int, axis: int) -> NamedSharding:
        is_cut = self.divides(examples)
        return NamedSharding(self.mesh, P(*(None,) * axis, self.axis_name) if is_cut else P())

    def divides(self, examples: int) -> bool:
        """Whether a batch is cut into parts of one size; else every device computes the whole.

        Args:
            examples: in the batch of all processes.
        """
        return examples % self.replicas == 0

    def _parts(self, batch: Batch, axis: int) -> Batch:
        """This process's part of batches."""
        here = self.mesh.local_mesh.size
        examples = jax.tree.leaves(batch)[0].shape[axis]
        if examples % here:
            raise ArgumentError(
                f"process {jax.process_index()} gave a batch of {examples} examples to its {here} devices, and each "
                f"takes as many as the others: give batches of {examples // here * here or here}, and drop the last"
            )
        sharding = NamedSharding(self.mesh, P(*(None,) * axis, self.axis_name))
        return jax.tree.map(partial(jax.make_array_from_process_local_data, sharding), batch)

    # Gradients

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
            gather = None if axis is None else gathering(self.axis_name, axis, reduce_dtype)
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
            Such a function of the whole: the loss is the mean, so are floating values that are not trainable, and
            outputs are one after the other.
        """

        def distributed(optimizer: Any, trainable: Any, other: Any, batch: Any, key: Any) -> Any:
            is_cut = self.divides(_examples(batch))

            def apart(leaf: jax.Array) -> jax.Array:
                return leaf[None]

            def local(optimizer: Any, trainable: Any, other: Any, batch: Any, key: Any) -> Any:
                if key is not None and is_cut and self.replicas > 1:  # what is random differs from part to part
                    key = jax.random.fold_in(key, lax.axis_index(self.axis_name))
                with replicas(self.axis_name) if is_cut else nullcontext():
                    value, after, outputs, gradients = backward(optimizer, trainable, other, batch, key)
                mean = self._means((value, after))
                if keeps_gradients_apart:
                    gradients = jax.tree.map(apart, gradients)
                return *mean, jax.tree.map(apart, outputs), gradients

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
            return value, after, jax.tree.map(_one_after_the_other if is_cut else _of_the_first, outputs), gradients

        return distributed

    def mean_of_apart(self, mean: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """A function of gradients that were kept apart, and of a state, that runs one of the gradients of each device.

        Args:
            mean: a function of one device's gradients and the state that gives what all have together.
        """

        def local(apart: Any, state: Any) -> Any:
            return mean(jax.tree.map(_of_the_first, apart), state)

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
                return lax.pmean(at_least_float32(leaf), self.axis_name).astype(leaf.dtype)
            return lax.pmax(leaf, self.axis_name)  # such as a count, the same everywhere

        return jax.tree.map(mean, tree)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._given!r}, batches={self.batches!r})"


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
        raise ArgumentError("minimize has whole variables on every device: use DataParallel().scope(), or fit")

    def spec(self, shape: tuple[int, ...]) -> P:
        """How variables, and what optimizers keep for them, are cut."""
        lengths = [length if length % self.replicas == 0 else 0 for length in shape]
        if self.replicas == 1 or not max(lengths, default=0) or np.prod(shape) < self.smallest:
            return P()
        axis = lengths.index(max(lengths))
        return P(*(None,) * axis, self.axis_name)


def _examples(batch: Any) -> int:
    return next((np.shape(leaf)[0] for leaf in jax.tree.leaves(batch) if np.ndim(leaf)), 0)


def _one_after_the_other(leaf: jax.Array) -> jax.Array:
    """The outputs of all parts, which had an axis of their own; what has no examples is that of the first part."""
    return leaf[0] if leaf.ndim == 1 else leaf.reshape(-1, *leaf.shape[2:])


def _of_the_first(leaf: jax.Array) -> jax.Array:
    return leaf[0]


def _from_host(sharding: NamedSharding, leaf: np.ndarray[Any, Any]) -> jax.Array:
    def part(place: Any) -> np.ndarray[Any, Any]:
        return leaf[place]

    return jax.make_array_from_callback(leaf.shape, sharding, part)


def _constrained(sharding: NamedSharding, leaf: Any) -> jax.Array:
    return lax.with_sharding_constraint(leaf, sharding)
