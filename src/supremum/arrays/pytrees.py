"""Registration of `Array` as a pytree of JAX."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from supremum.arrays.backends import backend_of
from supremum.arrays.conversion import convert
from supremum.arrays.wrapped import WrappedArray
from supremum.rules import scope_in_force


def register(array_class: type[WrappedArray]) -> None:
    """Register a class with JAX: its arrays are trees with one leaf. JAX must be installed.

    Args:
        array_class: the class, without its subclasses.

    Raises:
        ValueError: if it is registered already.
    """
    from jax.tree_util import GetAttrKey, register_pytree_with_keys

    def flatten_with_keys(array: WrappedArray) -> tuple[tuple[tuple[Any, Any]], bool]:
        (raw,), weak = _flatten(array)
        return ((GetAttrKey("raw"), raw),), weak

    def unflatten(weak: bool, leaves: Iterable[Any]) -> WrappedArray:
        (leaf,) = leaves  # of any type: JAX puts other objects there while it works on trees
        scope_in_force()  # checks JAX's cache key once, so that operations in a traced function need not do it
        return array_class.of_leaf(leaf.unwrap() if isinstance(leaf, WrappedArray) else leaf, weak)

    register_pytree_with_keys(array_class, flatten_with_keys, unflatten, _flatten)


def _flatten(array: WrappedArray) -> tuple[tuple[Any], bool]:
    """The array of the library, and whether the tree must keep our weak flag.

    Weak arrays of NumPy become weak arrays of JAX, as they would on entering a jitted function. With a flag in the
    tree, the input and the output of a scan would have different structures.
    """
    raw = array.unwrap()
    backend = backend_of(raw)
    if backend is None or backend.in_jax or not array.weak_type:
        return (raw,), False
    return ((raw,), True) if backend.name != "numpy" else ((convert(array, library="jax").unwrap(),), False)
