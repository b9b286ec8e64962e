"""`WrappedArray`, the base of `Array`: an array of a library with its key."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Self, TypeAlias

from supremum.arrays.backends import Backend, Key, Raw, backend_names, backend_of
from supremum.errors import OperandError
from supremum.formats import DType, as_format

KeyedRaw: TypeAlias = "tuple[Raw, Key]"
"""An array of a library, and its key."""


class WrappedArray:
    """An array of a library with its key; the base of `Array`.

    Args:
        raw: the array of the library.
        key: its key.
    """

    __slots__ = ("__weakref__", "_key", "_raw")
    _raw: Raw
    _key: Key

    def __init__(self, raw: Raw, key: Key) -> None:
        self._raw, self._key = raw, key

    @classmethod
    def of_leaf(cls, leaf: Any, weak: bool) -> Self:
        """An array made from a leaf of a tree, which is not always an array while JAX works on the tree.

        Args:
            leaf: the leaf.
            weak: whether the array was weak.
        """
        array = cls.__new__(cls)
        array._raw = leaf
        if weak and (backend := backend_of(leaf)) is not None:
            array._key = backend.key_of(leaf, weak=True)
        return array

    def unwrap(self) -> Raw:
        """The array of the library, which shares memory with this one, for functions such as those of `jax.numpy`."""
        return self._raw

    @property
    def key(self) -> Key:
        """Everything about this array that a prepared operation depends on."""
        # With a `__getattr__` instead of the `except`, every attribute would be slower.
        try:
            return self._key
        except AttributeError:  # the array is new from a tree of JAX, and has no key yet
            self._key = self.backend.key_of(self._raw)
            return self._key

    @property
    def backend(self) -> Backend:
        """The library."""
        backend = backend_of(self._raw)
        if backend is None:
            raise OperandError(
                f"this Array is part of a tree that JAX works on, and holds {type(self._raw).__name__}, not an array"
            )
        return backend

    @property
    def dtype(self) -> DType:
        """The dtype as an `np.dtype`, whatever the library; of ml_dtypes if NumPy itself does not have it."""
        # The objects that JAX puts into trees have a dtype too.
        backend = backend_of(self._raw)
        return as_format(self._raw.dtype).dtype if backend is None else backend.dtype_of(self._raw)

    @property
    def weak_type(self) -> bool:
        """Whether the array is weak: it takes the dtype of the operand that it meets."""
        return self.key.weak

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return tuple(self._raw.shape)

    @property
    def device(self) -> Any:
        """The device, in the library's notation."""
        return self.backend.device_of(self._raw)


# The class of the arrays that functions return, and how to register it as a pytree of JAX, which may be imported late;
# None once it is registered.
_kind: type[WrappedArray] = WrappedArray
_register: Callable[[type[WrappedArray]], None] | None = None
_registering = threading.Lock()
_modules, _new = sys.modules, object.__new__


def return_arrays_of(kind: type[WrappedArray], register: Callable[[type[WrappedArray]], None]) -> None:
    """Set the class of the arrays that functions return.

    Args:
        kind: the class.
        register: registers it as a pytree of JAX.
    """
    global _kind, _register
    _kind, _register = kind, register
    register_as_pytree()


def register_as_pytree() -> None:
    """Register the class once as a pytree of JAX if JAX is loaded; do not import JAX."""
    global _register
    if _register is None:
        return
    with _registering:
        if _register is not None and _modules.get("jax") is not None:
            _register(_kind)
            _register = None


def new_array(raw: Raw, key: Key) -> Any:
    """An `Array` made from an array of a library and its key."""
    if _register is not None and "jax" in _modules:
        register_as_pytree()
    array: Any = _new(_kind)  # without the constructor, which costs as much as the rest
    array._raw = raw
    array._key = key
    return array


def raw_and_key(value: Any, weak: bool = False) -> KeyedRaw:
    """An array of a library and its key.

    Args:
        value: an array of NumPy, JAX or PyTorch, or a wrapped one.
        weak: whether it is weak, for libraries with arrays that have no weak flag.

    Raises:
        OperandError: for anything else.
    """
    if isinstance(value, WrappedArray):
        return value.unwrap(), value.key
    backend = backend_of(value)
    if backend is None:
        raise OperandError(
            f"an Array must wrap an array of {', '.join(backend_names())}, got {type(value).__name__}; use "
            "supremum.asarray for numbers, lists and anything else that NumPy converts to an array"
        )
    return backend.with_key(value, weak)


def wrap(value: Any, weak: bool = False) -> Any:
    """An `Array` that wraps an array of a library.

    Args:
        value: an array of NumPy, JAX or PyTorch, or an `Array`, which is returned as it is.
        weak: whether it is weak, for libraries with arrays that have no weak flag.

    Raises:
        OperandError: for anything else.
    """
    return value if isinstance(value, WrappedArray) else new_array(*raw_and_key(value, weak))


def unwrapped(value: Any) -> Any:
    """The array that a value wraps, or the value itself; also in a tuple, as an index may be one."""
    if isinstance(value, tuple):
        parts: tuple[Any, ...] = value
        return tuple(map(unwrapped, parts))
    return value.unwrap() if isinstance(value, WrappedArray) else value
