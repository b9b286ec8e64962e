"""Registering `Array` as a pytree of JAX."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from supremum.arrays.backends import backend_of
from supremum.arrays.conversion import convert
from supremum.arrays.wrapped import WrappedArray
from supremum.rules import scope_in_force


def register(array_class: type[WrappedArray]) -> None:
    """Tell JAX that an array of a class is a tree with one leaf. JAX must be loaded or installed.

    Args:
        array_class: the class; its subclasses are not registered.

    Raises:
        ValueError: if it is registered already.
    """
    from jax.tree_util import GetAttrKey, register_pytree_with_keys

    def flatten_with_keys(array: WrappedArray) -> tuple[tuple[tuple[Any, Any]], bool]:
        (raw,), weak = _flatten(array)
        return ((GetAttrKey("raw"), raw),), weak

    def unflatten(weak: bool, leaves: Iterable[Any]) -> WrappedArray:
        (leaf,) = leaves  # of any type: JAX puts other things than arrays there while it works on trees
        scope_in_force()  # operations on what a traced function is given do not ask again whether JAX knows the rules
        return array_class.of_leaf(leaf.unwrap() if isinstance(leaf, WrappedArray) else leaf, weak)

    register_pytree_with_keys(array_class, flatten_with_keys, unflatten, _flatten)


def _flatten(array: WrappedArray) -> tuple[tuple[Any], bool]:
    """The array of the library, and whether there is a flag of ours to keep.

    Weak arrays of NumPy become JAX's own, as they would on entering a jitted function: a flag in the structure would
    differ between what enters a scan and what comes out of it.
    """
    raw = array.unwrap()
    backend = backend_of(raw)
    if backend is None or backend.has_weak_arrays or not array.weak_type:
        return (raw,), False
    if backend.name != "numpy":
        return (raw,), True
    return (convert(array, library="jax")[0],), False
