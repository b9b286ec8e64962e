"""Averages of gradients over replicas, in a chosen dtype."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp

from supremum.argument_checks import flag
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType
from supremum.mixed_precision.loss_scales import LossScaleState, as_state
from supremum.mixed_precision.policy.policy import as_reducible
from supremum.mixed_precision.pytrees import described, is_array, is_floating, is_inexact, rescale, unscale, widen
from supremum.rules import held_dtype
from supremum.typing import ArrayLike, DTypeLike, PyTree


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


def bound_axes(axis_name: Hashable) -> Axes:
    """Look up the axes of one name or a tuple of names.

    Raises:
        ArgumentError: for a name that no surrounding `jax.shard_map` or `jax.vmap` has, a repeated name, or an empty
            tuple.

    >>> mean = jax.vmap(lambda x: x / bound_axes("data").size, axis_name="data")
    >>> mean(jax.numpy.ones(2))
    Array([0.5, 0.5], dtype=float32)
    """
    names = cast("tuple[Any, ...]", tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,))
    if not names or any(name in names[:place] for place, name in enumerate(names)):
        raise ArgumentError(f"axis_name must be an axis name or a tuple of different names, got {shown(axis_name)}")
    size = math.prod(_size(name) for name in names)
    # The index along an axis varies along the axis wherever JAX tracks varying values.
    tracked = frozenset(name for name in names if name in varying_axes(jax.lax.axis_index(name)))
    return Axes(names, size, tracked)


def _size(name: Hashable) -> int:
    try:
        return jax.lax.axis_size(name)
    except (NameError, TypeError, ValueError):
        raise ArgumentError(
            f"there is no axis {shown(name)} here: reduce gradients inside the function given to jax.shard_map, over "
            f"an axis of its mesh, or to jax.vmap(..., axis_name={shown(name)})"
        ) from None


def varying_axes(leaf: ArrayLike) -> frozenset[Hashable]:
    """Return the tracked axes along which a leaf varies."""
    return jax.typeof(leaf).manual_axis_type.varying


def varying(tree: PyTree, axis_name: Hashable) -> Any:
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


def all_reduce_gradients(
    grads: PyTree,
    axis_name: Hashable,
    reduce_dtype: DTypeLike | None = None,
    loss_scale_state: LossScaleState | None = None,
    *,
    scaled: bool = False,
) -> Any:
    """Average gradients over all replicas, and sum them in a chosen dtype.

    Each replica divides its gradients by the number of replicas, then casts them to `reduce_dtype`; the sum cannot
    overflow unless the mean does. Small gradients flush to zero in float16 unless they are scaled (Keras RFC 293,
    "All-reducing in float16"): pass the state of the loss scale. Gradients are unscaled after the sum, in at least
    float32. A gradient that is not finite on one replica becomes non-finite on all of them.

    Call it inside the function given to `jax.shard_map` or to `jax.vmap(..., axis_name=)`. There, differentiate with
    respect to `jax.lax.pcast(params, axis_name, to="varying")`. JAX has already summed the gradients of parameters that
    are the same on all replicas, in the dtype of the computation.

    Args:
        grads: a pytree of real or complex floating arrays, the gradients of this replica. None stays None.
        axis_name: the name of the replica axis, or a tuple of several names.
        reduce_dtype: the real floating dtype to send and sum gradients in, of 16 bits or more; None for the dtype of
            each array, at least float32. Complex arrays keep theirs.
        loss_scale_state: the state of the loss scale; None if the loss is not scaled.
        scaled: whether the gradients come from the scaled loss and still carry the scale. Unscaled gradients are
            scaled before the sum.

    Returns:
        The same pytree, unscaled, in the dtypes of the arrays but at least float32; the same on all replicas.

    Raises:
        ArgumentError: for an unknown axis, gradients that JAX has already summed, a dtype that gradients cannot be
            reduced in, and `scaled=True` without a state; a `ValueError`.
        OperandError: for leaves that are not floating arrays; a `TypeError`.

    >>> import jax.numpy as jnp
    >>> grads = jnp.array([[6e4, 1.0], [6e4, 3.0]], jnp.float16)
    >>> jax.vmap(
    ...     lambda g: all_reduce_gradients(g, "data", "float16"), axis_name="data"
    ... )(grads)[0]
    Array([6.e+04, 2.e+00], dtype=float32)
    """
    if flag("scaled", scaled) and loss_scale_state is None:
        raise ArgumentError("scaled=True needs loss_scale_state, the state whose scale the gradients carry")
    if loss_scale_state is None:
        return replica_mean(grads, axis_name, reduce_dtype)
    scale = as_state(loss_scale_state).loss_scale
    if not scaled:
        _checked_axes(grads, axis_name)  # other leaves have no product with the scale
        grads = rescale(grads, scale)
    return unscale(replica_mean(grads, axis_name, reduce_dtype), scale)


def replica_mean(grads: PyTree, axis_name: Hashable, dtype: DTypeLike | None = None) -> Any:
    """Average gradients over all replicas in at least float32, without unscaling; see `all_reduce_gradients`."""
    size = _checked_axes(grads, axis_name).size

    def share(leaf: Any) -> jax.Array:
        return _wide(leaf) / size

    return replica_sum(jax.tree.map(share, grads), axis_name, dtype)


def replica_sum(grads: PyTree, axis_name: Hashable, dtype: DTypeLike | None = None) -> Any:
    """Sum gradients over all replicas, for a loss that was divided by the number of replicas; see `replica_mean`."""
    reduced = as_reduce_dtype(dtype)
    axes = _checked_axes(grads, axis_name)
    leaves, structure = jax.tree.flatten(jax.tree.map(_wide, grads))
    terms = [leaf if reduced is None or not is_floating(leaf) else leaf.astype(reduced) for leaf in leaves]
    summed = jax.lax.psum(terms, axes.names)  # XLA joins the sums of many arrays into few all-reduces
    return structure.unflatten([term.astype(leaf.dtype) for term, leaf in zip(summed, leaves, strict=True)])


def as_reduce_dtype(dtype: DTypeLike | None) -> DType | None:
    """Check that gradients can be reduced in a dtype, and return the dtype; None stays None.

    Raises:
        ArgumentError: for a dtype that is not real floating, has less than 16 bits, or needs JAX's x64 flag while that
            is off.
        UnknownDtypeError: for anything that is not a dtype.

    >>> as_reduce_dtype("f16")
    dtype('float16')
    """
    if dtype is None:
        return None
    row = as_reducible("gradients must be reduced in", dtype)
    if held_dtype(row.dtype) != row.dtype:
        raise ArgumentError(
            f"JAX has no {row} while x64 is off: call jax.config.update('jax_enable_x64', True), or use 'float32'"
        )
    return row.dtype


def _wide(leaf: ArrayLike) -> jax.Array:
    return widen(jnp.asarray(leaf))


def _checked_axes(grads: PyTree, axis_name: Hashable) -> Axes:
    axes = bound_axes(axis_name)
    for path, leaf in jax.tree_util.tree_leaves_with_path(grads):
        where = jax.tree_util.keystr(path, simple=True, separator="/") or "the root"
        if not is_inexact(leaf):
            raise OperandError(
                f"gradients must be floating-point arrays, got {described(leaf)} (at {where}): differentiate "
                "floating-point parameters only, or replace the gradient by None"
            )
        varies = varying_axes(leaf)
        if varies and not axes.tracked.issuperset(axes.names):
            raise ArgumentError(
                f"JAX cannot sum over a jax.vmap axis inside a jax.shard_map that tracks varying values "
                f"(axis_name={as_typed(axes.names)}): pass check_vma=False to jax.shard_map"
            )
        missing = in_order(axes, axes.tracked - varies)
        if missing:
            raise ArgumentError(
                f"the gradient at {where} is the same on all replicas along {as_typed(missing)}; JAX has already "
                "summed it, in the dtype of the computation: differentiate with respect to "
                f'jax.lax.pcast(params, {as_typed(missing)}, to="varying") instead of params'
            )
    return axes
