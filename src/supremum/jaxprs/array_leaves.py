"""The arrays among the leaves of a pytree: which leaves they are, and the tree with others in their place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from supremum.formats import FORMATS
from supremum.typing import PyTree

_DTYPES = frozenset(row.dtype for row in FORMATS)


def is_array(leaf: object) -> bool:
    """Whether a leaf is a JAX array, or a NumPy array or scalar that JAX can hold.

    PRNG keys are JAX arrays. A NumPy array counts if its dtype is a number format in the byte order of the machine:
    strings, times and objects do not.
    """
    return isinstance(leaf, jax.Array) or (isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype in _DTYPES)


def has_tracers(tree: PyTree) -> bool:
    """Whether a leaf of a tree is a value that JAX is tracing."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def call_key(arguments: PyTree) -> Hashable | None:
    """What the program of a call depends on; None if an argument cannot be hashed, so that nothing is known.

    Args:
        arguments: the arguments.

    >>> call_key(jnp.ones(2)) == call_key(jnp.zeros(2)), call_key(1) == call_key(1.0)
    (True, False)
    """
    leaves, tree = jax.tree.flatten(arguments)
    key = tree, *(
        (leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)) if is_array(leaf) else (type(leaf), leaf)
        for leaf in leaves
    )  # fmt: skip
    return if_hashable(key)


def if_hashable(key: Hashable) -> Hashable | None:
    """Return a key, or None if a part of it cannot be hashed.

    >>> if_hashable((1, "a")), if_hashable((1, []))
    ((1, 'a'), None)
    """
    try:
        hash(key)
    except TypeError:
        return None
    return key


def split_arrays(
    tree: PyTree, is_operand: Callable[[Any], bool] = is_array
) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Separate the arrays of a tree from its other leaves.

    Args:
        tree: the tree.
        is_operand: whether a leaf counts as an array.

    Returns:
        The arrays, those of NumPy as JAX arrays; and a function that returns the tree with other arrays in their place.

    >>> arrays, with_arrays = split_arrays({"x": np.float32(2), "name": "y"})
    >>> arrays, with_arrays([3.0])
    ([Array(2., dtype=float32)], {'name': 'y', 'x': 3.0})
    """
    leaves, structure = jax.tree.flatten(tree)
    places = list(map(is_operand, leaves))
    others = [None if array else leaf for leaf, array in zip(leaves, places, strict=True)]  # keeps no tracer alive

    def with_arrays(arrays: Sequence[Any]) -> Any:
        rest = iter(arrays)
        return structure.unflatten(next(rest) if array else other for other, array in zip(others, places, strict=True))

    return [_as_jax(leaf) for leaf, array in zip(leaves, places, strict=True) if array], with_arrays


def _as_jax(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf
