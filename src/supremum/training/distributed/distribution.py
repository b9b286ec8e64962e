"""Training on several devices: where arrays go, what each device computes, and how gradients are combined.

Keras RFC 293, mixed precision, "All-reduce dtype" and "All-reducing in float16". JAX does all communication.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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

from supremum.argument_checks import chosen, iterable
from supremum.errors import ArgumentError, OperandError, listed, shown
from supremum.formats import DType, as_format
from supremum.mixed_precision import keep_64_bits, replica_sum, widen
from supremum.nn import Layer, split_variables
from supremum.optimizers import across
from supremum.training.data import Batch, Rows
from supremum.training.distributed.layout import Layout, key_of, without_trailing_none
from supremum.training.losses import replicas
from supremum.typing import PyTree

_AXIS = "data"
"""The mesh axis that batches are split over if no mesh is given."""


class DataParallel:
    """Data parallelism: every replica has all weights and trains on its part of each batch; gradients are averaged.

    A replica is one device, or, on a mesh of several axes, the devices along all axes other than the data axes. A
    `layout` splits variables, and the optimizer's values for them, over these other axes, the model axes; JAX
    partitions the computations of a replica to match.

    Gradients are sent between replicas in the dtype that the optimizer and the policy ask for (`docs/distributed.md`):
    float16 and still scaled under `"mixed_float16"`, otherwise at least float32. If the number of replicas does not
    divide a batch, such as the last one of an epoch, every replica computes the whole batch.

    Args:
        mesh: the devices; None for all devices of all processes, along an axis called `"data"`.
        data_axes: the mesh axis, or several, that batches are split over; None for the only axis of a mesh.
        layout: a `jax.sharding.PartitionSpec` or a tuple by pattern, such as `{".*/kernel": (None, "model")}`: which
            model axis each axis of a variable is split over. A pattern is a regular expression that must match the
            whole path of a variable; the first match wins. Other variables are whole on every device.
        batches: `"global"` if every process gets the same data and takes its part of it, or `"per_process"` if every
            process gets different data, in batches of the same size, which together are the batch.

    Raises:
        OperandError: if `mesh` is not a mesh, or `layout` not a mapping to partitions; a `TypeError`.
        ArgumentError: if the mesh has several axes and `data_axes` is missing; a `ValueError`.
        UnknownNameError: for an unknown axis, or if `batches` has any other value; a `ValueError`.

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

    def __init__(
        self,
        mesh: Mesh | None = None,
        *,
        data_axes: str | Sequence[str] | None = None,
        layout: Mapping[str, P | Sequence[Any]] | None = None,
        batches: str = "global",
    ) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(
                f"mesh must be a jax.sharding.Mesh, got {shown(mesh)}: use jax.make_mesh((4,), ('data',))"
            )
        chosen("batches", batches, ("global", "per_process"))
        names: tuple[str, ...] = (_AXIS,) if mesh is None else mesh.axis_names
        self._given = mesh
        self._data_axes = _check_data_axes(data_axes, names)
        sizes = {} if mesh is None else {name: mesh.shape[name] for name in names if name not in self._data_axes}
        self._layout = Layout({} if layout is None else layout, sizes)
        self.batches = batches

    @cached_property
    def mesh(self) -> Mesh:
        """The devices, looked up on first use."""
        devices = np.asarray(jax.devices()) if self._given is None else self._given.devices
        names = (_AXIS,) if self._given is None else self._given.axis_names
        return Mesh(devices, names, axis_types=(AxisType.Auto,) * len(names))

    @property
    def axis_name(self) -> str | tuple[str, ...]:
        """The mesh axis that batches are split over, or a tuple of several."""
        return self._data_axes[0] if len(self._data_axes) == 1 else self._data_axes

    @property
    def replicas(self) -> int:
        """The number of parts of a batch."""
        return math.prod(self.mesh.shape[name] for name in self._data_axes)

    def spec(self, shape: tuple[int, ...], path: str = "") -> P:
        """The partition of a variable or of a slot of an optimizer.

        Args:
            shape: its shape.
            path: the path of the variable.
        """
        return self._layout.spec(path, shape)

    def check_layout(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise if the layout does not fit the variables.

        Args:
            shapes: the shapes of all variables of a model, by path.

        Raises:
            ArgumentError: if a variable cannot be split, or a pattern matches no variable; a `ValueError`.
        """
        self._layout.check(shapes)

    def specs(self, tree: PyTree, *, whole: bool = False) -> Any:
        """Return the partition of each array.

        Args:
            tree: a tree of arrays, in which the values of variables and their slots are in dicts by path.
            whole: whether every replica has the whole of each array; otherwise they are placed as trained variables
                and optimizer state are.
        """
        spec_of = DataParallel.spec if whole else type(self).spec

        def spec(entries: Any, leaf: Any) -> P:
            return spec_of(self, np.shape(leaf), key_of(entries))

        return jax.tree_util.tree_map_with_path(spec, tree)

    def place(self, tree: PyTree, *, whole: bool = False) -> Any:
        """Put arrays on their devices; arrays that are there already are returned as they are.

        Args:
            tree: a tree of arrays, the same on all processes.
            whole: as for `specs`.
        """

        def put(leaf: Any, spec: P) -> jax.Array:
            target = NamedSharding(self.mesh, spec)
            if isinstance(leaf, jax.Array) and leaf.sharding.is_equivalent_to(target, leaf.ndim):
                return leaf
            if jax.process_count() == 1:
                return jax.device_put(keep_64_bits(leaf), target)
            return _from_host(target, np.asarray(leaf))

        return jax.tree.map(put, tree, self.specs(tree, whole=whole))

    def place_variables(self, model: Layer) -> dict[str, jax.Array]:
        """Return the values of a model's variables by path, on their devices.

        Args:
            model: the model.

        Raises:
            ArgumentError: if the layout does not fit the variables; a `ValueError`.
        """
        self.check_layout({path: variable.shape for path, variable in model.variables.items()})
        trainable, other = split_variables(model)
        return self.place(trainable) | self.place(other, whole=True)

    def constrain(self, tree: PyTree, *, whole: bool = False) -> Any:
        """Constrain traced arrays to the placement that `place` gives them.

        Args:
            tree: a tree of arrays.
            whole: as for `specs`.
        """
        shardings = jax.tree.map(partial(NamedSharding, self.mesh), self.specs(tree, whole=whole))
        return lax.with_sharding_constraint(tree, shardings)

    def replicate(self, tree: PyTree) -> Any:
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

    def batch(self, batch: PyTree) -> Any:
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
        counts = multihost_utils.process_allgather(np.int32(-1 if steps is None else steps)).tolist()
        if len(set(counts)) > 1:
            each = ", ".join("unknown" if count < 0 else str(count) for count in counts)
            raise ArgumentError(
                f"the processes have {each} batches an epoch, but must have the same number; set "
                f"steps_per_epoch={max(1, min(counts))}, or data of one length"
            )

    @property
    def _is_per_process(self) -> bool:
        return self.batches == "per_process" and jax.process_count() > 1

    def _cut(self, examples: int, axis: int) -> NamedSharding:
        is_cut = self.can_split(examples)
        return NamedSharding(self.mesh, P(*(None,) * axis, self.axis_name) if is_cut else P())

    def can_split(self, examples: int) -> bool:
        """Whether a batch can be split into equal parts; if not, every replica computes the whole batch.

        Args:
            examples: the number of examples in the batch of all processes.
        """
        return examples % self.replicas == 0

    def _parts(self, batch: Batch, axis: int) -> Batch:
        """Place this process's part of batches on its devices."""
        here = math.prod(self.mesh.local_mesh.shape[name] for name in self._data_axes)
        examples = next((leaf.shape[axis] for leaf in jax.tree.leaves(batch) if leaf.ndim > axis), 0)
        if examples % here:
            raise ArgumentError(
                f"process {jax.process_index()} gave a batch of {examples} examples to its {here} replicas, but each "
                f"must get the same number; use batches of {examples // here * here or here}, and drop the last"
            )
        cut, whole = NamedSharding(self.mesh, P(*(None,) * axis, self.axis_name)), NamedSharding(self.mesh, P())

        def put(leaf: Any) -> jax.Array:
            return jax.make_array_from_process_local_data(cut if leaf.ndim > axis else whole, leaf)

        return jax.tree.map(put, batch)

    # Computation

    def aggregate(
        self, gradients: Mapping[str, Any], reduce_dtype: DType | None, shapes: Mapping[str, tuple[int, ...]]
    ) -> dict[str, Any]:
        """Sum gradients over the replicas, in one of them.

        Args:
            gradients: the gradients by key; the backward pass has already summed those of variables that are split over
                the replicas.
            reduce_dtype: the dtype that gradients are sent in; None for at least float32.
            shapes: the shapes of the variables, by key.
        """
        if self.replicas == 1:  # nothing to send
            return dict(gradients)
        whole = {key: each for key, each in gradients.items() if self.split_axis(shapes[key], key) is None}
        return {**gradients, **replica_sum(whole, self.axis_name, reduce_dtype)}

    def replica_values(
        self, values: Mapping[str, jax.Array], shapes: Mapping[str, tuple[int, ...]], reduce_dtype: DType | None
    ) -> dict[str, Any]:
        """Return the values that replace the variables' values in a replica.

        Args:
            values: this replica's part of each variable, by key.
            shapes: the shapes of the whole variables.
            reduce_dtype: as for `aggregate`.
        """
        del shapes, reduce_dtype  # for overrides
        return dict(values)

    def split_axis(self, shape: tuple[int, ...], path: str) -> int | None:
        """Return the axis of a variable that is split over the replicas; None if every replica has all of it.

        Args:
            shape: its shape.
            path: its path.
        """
        parts = tuple(self.spec(shape, path))
        return parts.index(self.axis_name) if self.axis_name in parts else None

    def _in_replicas(self, function: Callable[..., Any], in_specs: Any, out_specs: Any) -> Callable[..., Any]:
        """Run a function in each replica; specs name data axes only, and JAX splits its work over the model axes."""
        mapped = jax.shard_map(
            function,
            mesh=self.mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            axis_names=set(self._data_axes),
            # A loop in a user's layer may start from zeros, which are the same on all devices, and continue with
            # values that differ; with the check on, JAX refuses that. No caller differentiates through this.
            check_vma=False,
        )
        # Without jit, JAX cannot leave axes to the compiler.
        return mapped if set(self._data_axes) == set(self.mesh.axis_names) else jax.jit(mapped)

    def _specs_of_replicas(self, tree: PyTree) -> Any:
        """Return the data axes of each array's partition."""

        def of_replicas(spec: P) -> P:
            return without_trailing_none([part if part == self.axis_name else None for part in tuple(spec)])

        return jax.tree.map(of_replicas, self.specs(tree))

    def on_each_device(
        self, backward: Callable[..., Any], *, keeps_gradients_apart: bool = False
    ) -> Callable[..., Any]:
        """Turn a function of part of a batch into a function of the whole batch that runs in all replicas.

        Args:
            backward: a function of the optimizer's state, trainable and other values, a batch, and the data of a random
                key or None. It returns the loss, other values and outputs of its part, and aggregated gradients.
            keeps_gradients_apart: whether gradients are not aggregated, but stacked along a new first axis, one entry
                for each replica.

        Returns:
            A function of the same arguments for the whole batch. Its loss and non-trainable floating values are means
            over the replicas; its outputs are concatenated.
        """

        def distributed(optimizer: Any, trainable: Any, other: Any, batch: Any, key: Any) -> Any:
            is_cut = self.can_split(examples_in(batch))

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

            cut = self._specs_of_replicas(trainable)
            results = self._in_replicas(
                local,
                (self._specs_of_replicas(optimizer), cut, P(), jax.tree.map(spec_of_batch, batch), P()),
                (P(), P(), P(self.axis_name), P(self.axis_name) if keeps_gradients_apart else cut),
            )(optimizer, trainable, other, batch, key)
            value, after, outputs, gradients = results
            return value, after, jax.tree.map(_concatenate if is_cut else itemgetter(0), outputs), gradients

        return distributed

    def over_replicas(self, mean: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Turn a function of one replica's gradients into a function of the stacked gradients of all replicas.

        Args:
            mean: a function of one replica's gradients and a state that returns the mean over all replicas.
        """

        def local(apart: Any, state: Any) -> Any:
            return mean(jax.tree.map(itemgetter(0), apart), state)

        return self._in_replicas(local, (P(self.axis_name), P()), P())

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
        axes = {"data_axes": self.axis_name, "layout": self._layout} if self.mesh.devices.ndim > 1 else {}
        options = ", ".join(f"{name}={value!r}" for name, value in {**axes, "batches": self.batches}.items())
        return f"{type(self).__name__}({self._given!r}, {options})"


def _check_data_axes(axes: str | Sequence[str] | None, names: tuple[str, ...]) -> tuple[str, ...]:
    if axes is None:
        if len(names) > 1:
            raise ArgumentError(
                f"the mesh has the axes {listed(names)}; say which of them batches are split over: "
                f"data_axes={names[0]!r}"
            )
        return names
    if not isinstance(axes, str):
        iterable("data_axes", axes, "names of mesh axes")
    data_axes = (axes,) if isinstance(axes, str) else tuple(axes)
    for name in data_axes:
        chosen("mesh axis", name, names)
    if not data_axes or len(set(data_axes)) < len(data_axes):
        raise ArgumentError(f"data_axes must be one axis of the mesh or several different ones, got {shown(axes)}")
    return data_axes


def _mean(axis_name: str | tuple[str, ...], leaf: jax.Array) -> jax.Array:
    if as_format(leaf.dtype).is_inexact:
        return lax.pmean(widen(leaf), axis_name).astype(leaf.dtype)
    return lax.pmax(leaf, axis_name)  # such as a count, which is the same on all devices


def _concatenate(leaf: jax.Array) -> jax.Array:
    """Concatenate the stacked outputs of all parts; of an output without examples, take the first part's."""
    return leaf[0] if leaf.ndim == 1 else leaf.reshape(-1, *leaf.shape[2:])


def examples_in(batch: PyTree) -> int:
    """The number of examples in a batch: the length of the first axis of its arrays."""
    return next((np.shape(leaf)[0] for leaf in jax.tree.leaves(batch) if np.ndim(leaf)), 0)


def _from_host(sharding: NamedSharding, leaf: np.ndarray[Any, Any]) -> jax.Array:
    return jax.make_array_from_callback(leaf.shape, sharding, lambda place: keep_64_bits(leaf[place]))
