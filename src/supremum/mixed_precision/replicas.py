"""The named axes that replicas lie along, and which values differ from replica to replica."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, cast

import jax

from supremum.errors import ArgumentError, shown
from supremum.mixed_precision.tree_casting import is_array


class Axes(NamedTuple):
    """Named axes of a `jax.shard_map` or `jax.vmap` that is being traced.

    Args:
        names: their names.
        size: how many replicas there are along them in all.
        tracked: those along which JAX keeps track of what varies: mesh axes under `check_vma`, which is the default.
    """

    names: tuple[Hashable, ...]
    size: int
    tracked: frozenset[Hashable]

    def __str__(self) -> str:
        return as_typed(self.names)


def bound_axes(axis_name: Any) -> Axes:
    """The axes of one name or a tuple of names.

    Raises:
        ArgumentError: for a name that no surrounding `jax.shard_map` or `jax.vmap` has, given twice, or none at all.

    >>> jax.vmap(lambda x: x / bound_axes("data").size, axis_name="data")(jax.numpy.ones(2))
    Array([0.5, 0.5], dtype=float32)
    """
    names = cast("tuple[Any, ...]", tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,))
    if not names or any(name in names[:place] for place, name in enumerate(names)):
        raise ArgumentError(
            f"axis_name must be the name of an axis, or a tuple of different names, got {shown(axis_name)}"
        )
    size = math.prod(_size(name) for name in names)
    # The place along an axis differs from place to place if anything does.
    tracked = frozenset(name for name in names if name in varying_axes(jax.lax.axis_index(name)))
    return Axes(names, size, tracked)


def _size(name: Any) -> int:
    try:
        return jax.lax.axis_size(name)
    except (NameError, TypeError, ValueError):
        raise ArgumentError(
            f"there is no axis {shown(name)} here: gradients are reduced inside of the function given to "
            "jax.shard_map, "
            f"over an axis of its mesh, or to jax.vmap(..., axis_name={shown(name)})"
        ) from None


def varying_axes(leaf: Any) -> frozenset[Hashable]:
    """The tracked axes along which a leaf varies."""
    return jax.typeof(leaf).manual_axis_type.varying


def varying(tree: Any, axis_name: Any) -> Any:
    """A pytree whose arrays and numbers count as different on every replica, though they are the same so far.

    What is differentiated with respect to such values is the gradient of each replica. Of values that are known to be
    the same everywhere JAX gives the sum over all replicas, in the dtype of the computation.

    Args:
        tree: any pytree; leaves that are not arrays or numbers stay as they are.
        axis_name: the name of an axis, or a tuple of names. Where JAX does not track what varies nothing changes.

    Raises:
        ArgumentError: as `bound_axes`.
    """
    axes = bound_axes(axis_name)

    def cast_one(leaf: Any) -> Any:
        if not (is_array(leaf) or isinstance(leaf, (bool, int, float, complex))):
            return leaf
        missing = in_order(axes, axes.tracked - varying_axes(leaf))
        return jax.lax.pcast(leaf, missing, to="varying") if missing else leaf

    return jax.tree.map(cast_one, tree)


def in_order(axes: Axes, names: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Some of the axes, in the order that they were given in."""
    chosen = frozenset(names)
    return tuple(name for name in axes.names if name in chosen)


def as_typed(names: tuple[Hashable, ...]) -> str:
    """One name, or a tuple of several, as they are typed."""
    return repr(names[0] if len(names) == 1 else names)
