"""Gradients averaged over replicas, in the dtype that is asked for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from supremum.argument_checks import flag, whole_number
from supremum.errors import ArgumentError, OperandError
from supremum.formats import DType, as_format
from supremum.mixed_precision.loss_scale.scaling import rescale, unscale
from supremum.mixed_precision.loss_scale.state import LossScaleState, as_state
from supremum.mixed_precision.policy.roles import reducible_formats
from supremum.mixed_precision.replicas import Axes, as_typed, bound_axes, in_order, varying_axes
from supremum.mixed_precision.tree_casting import described, is_floating, is_inexact, widen
from supremum.rules import held_dtype

BUCKET_BYTES = 2**25
"""The default size limit of one all-reduce: large enough to hide its latency, small compared with a model."""


def all_reduce_gradients(
    grads: Any,
    axis_name: Any,
    reduce_dtype: Any = None,
    loss_scale_state: LossScaleState | None = None,
    *,
    scaled: bool = False,
    bucket_bytes: int = BUCKET_BYTES,
) -> Any:
    """The mean of gradients over all replicas, summed in the dtype that is asked for.

    Each replica divides its gradients by the number of replicas before they are cast to `reduce_dtype` and summed, so
    that the sum cannot overflow where the mean would not. In float16 small gradients flush to zero unless they travel
    scaled (the RFC, "All-reducing in float16"): give the state of the loss scale. They are unscaled after the sum, in
    at least float32. What is not finite on one replica is not finite on any afterwards.

    It runs inside the function given to `jax.shard_map` or to `jax.vmap(..., axis_name=)`. There, differentiate with
    respect to `jax.lax.pcast(params, axis_name, to="varying")`: for parameters that are the same on all replicas JAX
    has summed the gradients already, in the dtype of the computation.

    Args:
        grads: a pytree of real or complex floating arrays, those of this replica. None stays None.
        axis_name: the axis that replicas lie along, or a tuple of several.
        reduce_dtype: the real floating dtype that travels and is summed in, of 16 bits or more; None for the dtype of
            each array, at least float32. Complex arrays keep theirs.
        loss_scale_state: the state of the loss scale; None where there is none.
        scaled: whether the gradients are those of the scaled loss, which still carry the scale. Unscaled ones are
            scaled for the journey.
        bucket_bytes: arrays of one dtype share an all-reduce up to this size. A larger array has one of its own.

    Returns:
        The same pytree, unscaled, in the dtypes of the arrays but at least float32; the same on all replicas.

    Raises:
        ArgumentError: for an axis that is not there, gradients that JAX has already summed, a dtype that gradients
            are not reduced in, and `scaled=True` without a state; a `ValueError`.
        OperandError: for leaves that are not floating arrays; a `TypeError`.

    >>> import jax.numpy as jnp
    >>> grads = jnp.array([[6e4, 1.0], [6e4, 3.0]], jnp.float16)
    >>> jax.vmap(lambda g: all_reduce_gradients(g, "data", "float16"), axis_name="data")(grads)[0]
    Array([6.e+04, 2.e+00], dtype=float32)
    """
    if loss_scale_state is None:
        if flag("scaled", scaled):
            raise ArgumentError("scaled=True needs the loss_scale_state that scaled the gradients, to unscale them by")
        return replica_mean(grads, axis_name, reduce_dtype, bucket_bytes)
    scale = as_state(loss_scale_state).loss_scale
    _checked_axes(grads, axis_name)
    travelling = grads if flag("scaled", scaled) else rescale(grads, scale)
    return unscale(replica_mean(travelling, axis_name, reduce_dtype, bucket_bytes), scale)


def replica_mean(grads: Any, axis_name: Any, dtype: Any = None, bucket_bytes: int = BUCKET_BYTES) -> Any:
    """The mean of gradients over all replicas, scaled as they are, in at least float32: see `all_reduce_gradients`."""
    axes = _checked_axes(grads, axis_name)

    def share(leaf: Any) -> jax.Array:
        return _wide(leaf) / axes.size

    return replica_sum(jax.tree.map(share, grads), axis_name, dtype, bucket_bytes)


def replica_sum(grads: Any, axis_name: Any, dtype: Any = None, bucket_bytes: int = BUCKET_BYTES) -> Any:
    """The sum of gradients over all replicas, for a loss that was divided by their number: see `replica_mean`."""
    asked = checked_reduce_dtype(dtype)
    bucket_bytes = whole_number("bucket_bytes", bucket_bytes, 1, int(as_format("int64").max))
    axes = _checked_axes(grads, axis_name)
    leaves, structure = jax.tree.flatten(jax.tree.map(_wide, grads))
    travelling = [leaf if asked is None or not is_floating(leaf) else leaf.astype(asked) for leaf in leaves]
    summed: dict[int, jax.Array] = {}
    for bucket in _buckets(travelling, bucket_bytes):
        joined, split = ravel_pytree([travelling[index] for index in bucket])
        summed |= zip(bucket, split(jax.lax.psum(joined, axes.names)), strict=True)
    return structure.unflatten([summed[index].astype(leaf.dtype) for index, leaf in enumerate(leaves)])


def checked_reduce_dtype(dtype: Any) -> DType | None:
    """A dtype that gradients can be reduced in; None stays None.

    Raises:
        ArgumentError: for one that is not real floating, has less than 16 bits, or needs JAX's x64 while that is off.
        UnknownDtypeError: for anything that is not a dtype.

    >>> checked_reduce_dtype("f2")
    dtype('float16')
    """
    if dtype is None:
        return None
    row = as_format(dtype)
    if row not in reducible_formats():
        *names, last = map(str, reducible_formats())
        raise ArgumentError(f"gradients are reduced in {', '.join(names)} or {last}, not in {row}")
    if held_dtype(row.dtype) != row.dtype:
        raise ArgumentError(f"JAX has no {row} while x64 is off: jax.config.update('jax_enable_x64', True), or float32")
    return row.dtype


def _wide(leaf: Any) -> jax.Array:
    return widen(jnp.asarray(leaf))


def _checked_axes(grads: Any, axis_name: Any) -> Axes:
    axes = bound_axes(axis_name)
    for path, leaf in jax.tree_util.tree_leaves_with_path(grads):
        where = jax.tree_util.keystr(path, simple=True, separator="/") or "the root"
        if not is_inexact(leaf):
            raise OperandError(
                f"gradients must be floating arrays, got {described(leaf)} (at {where}): differentiate floating "
                "parameters only, or put None in its place"
            )
        varies = varying_axes(leaf)
        if varies and not axes.tracked.issuperset(axes.names):
            raise ArgumentError(
                f"JAX sums over no axis of jax.vmap inside of a jax.shard_map that tracks what varies, as it does here "
                f"(axis_name={axes}): pass check_vma=False to jax.shard_map"
            )
        missing = in_order(axes, axes.tracked - varies)
        if missing:
            raise ArgumentError(
                f"the gradient at {where} is the same on all replicas along {as_typed(missing)}, so JAX has summed it "
                f"already, in the dtype of the computation: differentiate with respect to "
                f'jax.lax.pcast(params, {as_typed(missing)}, to="varying") instead of params'
            )
    return axes


def _buckets(leaves: Sequence[jax.Array], bucket_bytes: int) -> list[list[int]]:
    """The indices of the leaves that share an all-reduce; each leaf is in one bucket."""
    buckets: list[list[int]] = []
    open_ones: dict[Hashable, tuple[list[int], int]] = {}
    for index, leaf in enumerate(leaves):
        # Joined to one that varies along more axes, a leaf would count as varying along these too.
        kind = (leaf.dtype, varying_axes(leaf))
        bucket, filled = open_ones.get(kind, ([], 0))
        if not bucket or filled + leaf.nbytes > bucket_bytes:
            bucket, filled = [], 0
            buckets.append(bucket)
        bucket.append(index)
        open_ones[kind] = bucket, filled + leaf.nbytes
    return buckets
