"""`Array` as a pytree of JAX, once JAX is loaded."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from supremum.arrays.array import Array
from supremum.arrays.backends import backend_of
from supremum.rules.scope import scope_in_force


def register_when_loaded() -> None:
    """Tell JAX that an `Array` is a tree of one leaf: now, or when it is imported. It is never imported for that."""
    if "jax" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _AfterJax())


class _AfterJax(importlib.abc.MetaPathFinder):
    """Finds JAX as it would be found without it, and registers `Array` after it has been loaded.

    Without it an array made before JAX was imported would be no argument of the first jitted function.
    """

    def find_spec(self, fullname: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        """The spec of JAX; None for any other module."""
        if fullname != "jax":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Registering(spec.loader)
        return spec


class _Registering(importlib.abc.Loader):
    """A loader that registers `Array` when it is done."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As the loader does."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As the loader does, and then the registration."""
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        _register()


def _register() -> None:
    import jax

    jax.tree_util.register_pytree_with_keys(Array, _flatten_with_keys, _unflatten, _flatten)


def _flatten(array: Array) -> tuple[tuple[Any], bool]:
    """The array of the library, and whether there is a flag of ours to keep.

    Weak arrays of NumPy become JAX's own, as they would on entering a jitted function: a flag in the structure would
    differ between what enters a scan and what comes out of it.
    """
    raw = array.unwrap()
    backend = backend_of(raw)
    if backend is None or backend.own_weakness or not array.weak_type:
        return (raw,), False
    if backend.name != "numpy":
        return (raw,), True
    from supremum.arrays.conversion import asarray

    return (asarray(array, library="jax").unwrap(),), False


def _flatten_with_keys(array: Array) -> tuple[tuple[tuple[Any, Any]], bool]:
    import jax

    (raw,), weak = _flatten(array)
    return ((jax.tree_util.GetAttrKey("raw"), raw),), weak


def _unflatten(weak: bool, leaves: Iterable[Any]) -> Array:
    """An array of any leaf: JAX puts other things than arrays there while it works on trees."""
    (raw,) = leaves
    scope_in_force()  # operations on what a traced function is given do not ask again whether JAX knows the rules
    return Array.of_leaf(raw.unwrap() if isinstance(raw, Array) else raw, weak)
