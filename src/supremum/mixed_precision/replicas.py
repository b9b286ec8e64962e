"""Named replica axes, and the axes along which a value varies."""

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
        names: the names of the axes.
        size: the number of replicas along all of them.
        tracked: the axes along which JAX tracks varying values: mesh axes under `check_vma`, which is the default.
    """

    names: tuple[Hashable, ...]
    size: int
    tracked: frozenset[Hashable]

    def __str__(self) -> str:
        return as_typed(self.names)


def bound_axes(axis_name: Any) -> Axes:
    """Look up the axes of one name or a tuple of names.

    Raises:
        ArgumentError: for a name that no surrounding `jax.shard_map` or `jax.vmap` has, a repeated name, or an empty
            tuple.

    >>> jax.vmap(lambda x: x / bound_axes("data").size, axis_name="data")(jax.numpy.ones(2))
    Array([0.5, 0.5], dtype=float32)
    """
    names = cast("tuple[Any, ...]", tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,))
    if not names or any(name in names[:place] for place, name in enumerate(names)):
        raise ArgumentError(f"axis_name must be an axis name or a tuple of different names, got {shown(axis_name)}")
    size = math.prod(_size(name) for name in names)
    # The index along an axis varies along the axis wherever JAX tracks varying values.
    tracked = frozenset(name for name in names if name in varying_axes(jax.lax.axis_index(name)))
    return Axes(names, size, tracked)


def _size(name: Any) -> int:
    try:
        return jax.lax.axis_size(name)
    except (NameError, TypeError, ValueError):
        raise ArgumentError(
            f"there is no axis {shown(name)} here: reduce gradients inside the function given to jax.shard_map, over "
            f"an axis of its mesh, or to jax.vmap(..., axis_name={shown(name)})"
        ) from None


def varying_axes(leaf: Any) -> frozenset[Hashable]:
    """Return the tracked axes along which a leaf varies."""
    return jax.typeof(leaf).manual_axis_type.varying


def varying(tree: Any, axis_name: Any) -> Any:
    """Mark the arrays and numbers of a pytree as varying between replicas.

    The gradient with respect to a varying value is the gradient of each replica. For a value that is the same on all
    replicas, JAX returns the sum over the replicas, in the dtype of the computation.

    Args:
        tree: any pytree; leaves that are not arrays or numbers stay as they are.
        axis_name: the name of an axis, or a tuple of names. Nothing changes where JAX does not track varying values.

    Raises:
        ArgumentError: as for `bound_axes`.
    """
    axes = bound_axes(axis_name)

    def cast_one(leaf: Any) -> Any:
        if not (is_array(leaf) or isinstance(leaf, (bool, int, float, complex))):
            return leaf
        missing = in_order(axes, axes.tracked - varying_axes(leaf))
        return jax.lax.pcast(leaf, missing, to="varying") if missing else leaf

    return jax.tree.map(cast_one, tree)


def in_order(axes: Axes, names: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Sort axis names in the order of `axes`."""
    return tuple(sorted(names, key=axes.names.index))


def as_typed(names: tuple[Hashable, ...]) -> str:
    """Show axis names as a user types them: one name, or a tuple."""
    return repr(names[0] if len(names) == 1 else names)
