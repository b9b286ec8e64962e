"""`WrappedArray`: an array of a library with its key, which is what the functions that `Array` stands on know of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeAlias

from supremum.arrays.backends import Backend, Key, Raw, backend_names, backend_of
from supremum.errors import OperandError
from supremum.formats import DType, as_format

KeyedRaw: TypeAlias = "tuple[Raw, Key]"
"""An array of a library, and its key: what the functions that `Array` stands on return."""
Wrap: TypeAlias = "Callable[[Raw, Key], Any]"
"""Makes an `Array` of an array of a library and its key."""


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
        """An array of what JAX puts into trees, which is not always an array while JAX works on the tree.

        Args:
            leaf: what JAX puts there.
            weak: whether the array was weak.
        """
        backend = backend_of(leaf) if weak else None
        array = cls.__new__(cls)
        array._raw = leaf
        if backend is not None:
            array._key = backend.key_of(leaf, weak=True)
        return array

    def unwrap(self) -> Raw:
        """The array of the library, which shares memory with this one: the way into functions of `jax.numpy`."""
        return self._raw

    @property
    def key(self) -> Key:
        """Everything that a prepared operation depends on."""
        # A `__getattr__` in place of the `except` would make every attribute slower.
        try:
            return self._key
        except AttributeError:  # JAX has put a tree together, and this is the first look at the leaf
            self._key = self.backend.key_of(self._raw)
            return self._key

    @property
    def backend(self) -> Backend:
        """The library."""
        backend = backend_of(self._raw)
        if backend is None:
            raise OperandError(f"this Array holds a {type(self._raw).__name__}, as trees do while JAX works on them")
        return backend

    @property
    def dtype(self) -> DType:
        """Its dtype, as NumPy's (of ml_dtypes where NumPy has none), whatever the library."""
        # What JAX puts into trees while it works on them has a dtype too.
        backend = backend_of(self._raw)
        return as_format(self._raw.dtype).dtype if backend is None else backend.dtype_of(self._raw)

    @property
    def weak_type(self) -> bool:
        """Whether it has no dtype of its own and gives way to the next operand's."""
        return self.key.weak

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return tuple(self._raw.shape)

    @property
    def device(self) -> Any:
        """Where it is, as the library says."""
        return self.backend.device_of(self._raw)


def raw_and_key(value: Any, weak: bool = False) -> KeyedRaw:
    """An array of a library and its key.

    Args:
        value: an array of NumPy, JAX or PyTorch, or a wrapped one.
        weak: whether it is weak, where the library's arrays do not say so themselves.

    Raises:
        OperandError: for anything else.
    """
    if isinstance(value, WrappedArray):
        return value.unwrap(), value.key
    backend = backend_of(value)
    if backend is None:
        raise OperandError(
            f"an Array wraps an array of {', '.join(backend_names())}, got a {type(value).__name__}; use "
            "supremum.asarray for numbers, lists and other things that NumPy makes arrays of"
        )
    return keyed(backend, value, weak)


def keyed(backend: Backend, raw: Raw, weak: bool = False) -> KeyedRaw:
    """An array of a library that is known, and its key.

    Args:
        backend: the library.
        raw: the array.
        weak: as for `raw_and_key`.
    """
    plain = backend.plain(raw)
    return plain, backend.key_of(plain, weak)


def unwrapped(value: Any) -> Any:
    """The array that a value wraps, or the value itself."""
    return value.unwrap() if isinstance(value, WrappedArray) else value


def unwrapped_index(index: Any) -> Any:
    """An index without wrapped arrays in it."""
    if isinstance(index, tuple):
        parts: tuple[Any, ...] = index
        return tuple(map(unwrapped_index, parts))
    return index.unwrap() if isinstance(index, WrappedArray) else index
