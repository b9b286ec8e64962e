"""Conversion of the data of `fit` and of iterables to batches of arrays in dtypes that JAX holds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype

from supremum.argument_checks import pytree
from supremum.errors import ArgumentError, OperandError, UnknownDtypeError
from supremum.formats import as_format
from supremum.mixed_precision import PolicyWarning, native
from supremum.nn import described
from supremum.rules import held_dtype
from supremum.training.data.batch import Batch
from supremum.training.data.inputs import refuse_masked
from supremum.user_frame import warn_user


def as_batch(batch: Any, *, copies: bool = False) -> Batch:
    """Convert an item of an iterable to a batch of arrays.

    Args:
        batch: the item.
        copies: whether to copy mutable arrays.

    Raises:
        ArgumentError: if the tuple is empty or has more than three parts; a `ValueError`.
        OperandError: if a leaf is not an array; a `TypeError`.
    """
    parts = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
    if not 1 <= len(parts) <= 3:
        raise ArgumentError(f"a batch must be x, (x, y) or (x, y, sample_weight), got {len(parts)} parts")
    made = Batch(*(as_arrays(name, part, copies=copies) for name, part in zip(Batch._fields, parts, strict=False)))
    common_length(made)
    return made


def as_arrays(name: str, tree: Any, *, copies: bool = False) -> Any:
    """Convert the leaves of a tree to NumPy or JAX arrays in dtypes that JAX holds.

    With JAX's x64 off, 64-bit floats are narrowed with a warning; integers must fit.

    Args:
        name: the name of the tree in error messages.
        tree: the tree.
        copies: whether to copy mutable arrays that were not created here.
    """
    if tree is None:
        return None
    given = pytree(name, tree)
    if isinstance(tree, list):
        tree = _list_as_array(name, tree)
    is_new = isinstance(given, list) and tree is not given

    def held(leaf: Any) -> Any:
        array = _as_array(name, leaf)
        found = _as_held(name, array)
        can_change = found is array and not is_new and not isinstance(leaf, jax.Array)
        return _copied(found) if copies and can_change else found

    return jax.tree.map(held, tree)


def _copied(array: Any) -> Any:
    """Copy an array before returning; a plain copy by JAX may read the memory later."""
    return jnp.array(array, copy=True).block_until_ready() if isinstance(array, jax.Array) else np.array(array)


def _list_as_array(name: str, tree: list[Any]) -> Any:
    """Convert a list of numbers to an array; keep a list of arrays, the inputs of a model with several inputs."""
    refuse_masked(name, tree)
    if tree and all(hasattr(part, "shape") and np.ndim(part) > 0 for part in tree):
        return tree
    try:
        array = np.asarray(tree)
    except ValueError:
        raise OperandError(
            f"{name} must not be a list of parts of different lengths; pad them and use np.asarray(...)"
        ) from None
    # Python numbers have no width, so they get JAX's default.
    is_inexact = _is_number(array.dtype) and as_format(array.dtype).is_inexact
    return array.astype(canonicalize_dtype(array.dtype)) if is_inexact else array


def _as_array(name: str, leaf: Any) -> Any:
    refuse_masked(name, leaf)
    if isinstance(leaf, (jax.Array, np.ndarray)):
        array = leaf
    else:
        try:
            array = np.asarray(leaf)
        except (TypeError, RuntimeError, ValueError):
            # NumPy cannot read some tensors of other libraries: those on other devices, and PyTorch's bfloat16.
            array = jnp.from_dlpack(leaf) if hasattr(leaf, "__dlpack__") else np.asarray(None)
    if not _is_number(array.dtype):
        held = f"{array.dtype}{list(array.shape)}" if array is leaf else type(leaf).__name__
        raise OperandError(f"{name} must hold arrays of numbers, got {held}; use np.asarray(...) of numbers")
    if array.ndim == 0:
        raise ArgumentError(f"{name} must have a first axis for the examples, got a single number")
    return native(array)


def _is_number(dtype: Any) -> bool:
    try:
        as_format(dtype)
    except UnknownDtypeError:
        return False
    return True


def _as_held(name: str, array: Any) -> Any:
    held = held_dtype(array.dtype)
    if held == array.dtype:
        return array
    if as_format(array.dtype).category == "integer":
        limits = as_format(held)
        if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
            raise ArgumentError(
                f"{name} holds {as_format(array.dtype)} numbers that do not fit {limits}, the widest "
                "integer with JAX's x64 off; set jax.config.update('jax_enable_x64', True), or use smaller numbers"
            )
    else:
        warn_user(
            f"{name} is {as_format(array.dtype)}, and JAX narrows it to {as_format(held)}; set "
            f"jax.config.update('jax_enable_x64', True) to keep it, or narrow it "
            f"without this warning by {name}.astype('{as_format(held)}')",
            PolicyWarning,
        )
    return np.asarray(array).astype(held)


def common_length(batch: Batch) -> int:
    """Return the number of examples in a batch.

    Raises:
        ArgumentError: if the arrays have different lengths, or no examples; a `ValueError`.
    """
    found = {leaf.shape[0] for leaf in jax.tree.leaves(batch)}
    if len(found) != 1:
        told = described((), {name: part for name, part in batch._asdict().items() if part is not None})
        raise ArgumentError(f"all arrays must have the same number of examples, got {told}")
    if found == {0}:
        raise ArgumentError("there are no examples: x is empty")
    return found.pop()
