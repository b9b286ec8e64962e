"""Placement of variables, optimizer state and batches on several devices."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from supremum.argument_checks import chosen
from supremum.errors import ArgumentError, OperandError, shown
from supremum.mixed_precision import keep_64_bits
from supremum.training.data import Batch, Rows

AXIS = "data"
"""The mesh axis that batches are split over if no mesh is given."""
_BATCHES = ("global", "per_process")


class Placement:
    """Placement of arrays: every device holds all variables and one part of each batch.

    Args:
        mesh: the devices, with one axis; None for all devices of all processes, along an axis called `"data"`.
        batches: `"global"` if every process gets the same data and takes its part of it, or `"per_process"` if every
            process gets different data, in batches of the same size, which together are the batch.

    Raises:
        OperandError: if `mesh` is not a mesh; a `TypeError`.
        ArgumentError: if the mesh has several axes; a `ValueError`.
        UnknownNameError: if `batches` has any other value; a `ValueError`.
    """

    def __init__(self, mesh: Mesh | None = None, *, batches: str = "global") -> None:
        if mesh is not None and not isinstance(mesh, Mesh):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(
                f"mesh must be a jax.sharding.Mesh, got {shown(mesh)}: use jax.make_mesh((4,), ('data',))"
            )
        if mesh is not None and len(mesh.axis_names) != 1:
            names = ", ".join(mesh.axis_names)
            raise ArgumentError(
                f"the mesh must have one axis, got {names}: give jax.make_mesh(({mesh.size},), ('{AXIS}',))"
            )
        chosen("batches", batches, _BATCHES)
        self._given = mesh
        self._mesh: Mesh | None = None
        self.batches = batches

    @property
    def mesh(self) -> Mesh:
        """The devices, looked up on first use."""
        if self._mesh is None:
            devices = np.asarray(jax.devices()) if self._given is None else self._given.devices
            names = (AXIS,) if self._given is None else self._given.axis_names
            self._mesh = Mesh(devices, names, axis_types=(AxisType.Auto,))
        return self._mesh

    @property
    def axis_name(self) -> str:
        """The mesh axis that batches are split over."""
        return self.mesh.axis_names[0]

    @property
    def replicas(self) -> int:
        """The number of devices."""
        return self.mesh.size

    def spec(self, shape: tuple[int, ...]) -> P:
        """The partition of a variable and of its optimizer state.

        Args:
            shape: the shape of the variable.
        """
        del shape
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._given!r}, batches={self.batches!r})"


def examples_in(batch: Any) -> int:
    """The number of examples in a batch: the length of the first axis of its arrays."""
    return next((np.shape(leaf)[0] for leaf in jax.tree.leaves(batch) if np.ndim(leaf)), 0)


def _from_host(sharding: NamedSharding, leaf: np.ndarray[Any, Any]) -> jax.Array:
    return jax.make_array_from_callback(leaf.shape, sharding, lambda place: keep_64_bits(leaf[place]))
