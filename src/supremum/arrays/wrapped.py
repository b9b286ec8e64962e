"""`WrappedArray`, the base of `Array`: an array of a library with its key; the keys and libraries of all operands."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self, TypeAlias, cast

import numpy as np

from supremum.arrays.backends import Backend, Key, Raw, backend_names, backend_of
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.errors import LibraryError
from supremum.errors import OperandError, shown
from supremum.fix import letter
from supremum.formats import DType, as_format
from supremum.operands import TYPE_OF_CATEGORY, Operand, as_operand
from supremum.rules import RuleSet, RulesLike, get_rules, memory_of
from supremum.typing import Scalar, SupportsArray

KeyedRaw: TypeAlias = "tuple[Any, Key]"
"""An array of a library, and its key."""


class WrappedArray:
    """An array of a library with its key; the base of `Array`.

    Args:
        raw: the array of the library.
        key: its key.
    """

    __slots__ = ("__weakref__", "_key", "_raw")
    _raw: Any
    _key: Key

    def __init__(self, raw: Raw, key: Key) -> None:
        self._raw, self._key = raw, key

    @classmethod
    def of_leaf(cls, leaf: object, weak: bool) -> Self:
        """An array made from a leaf of a tree, which is not always an array while JAX works on the tree.

        Args:
            leaf: the leaf.
            weak: whether the array was weak.
        """
        array = cls.__new__(cls)
        array._raw = leaf
        if weak and (backend := backend_of(leaf)) is not None:
            array._key = backend.key_of(array._raw, weak=True)
        return array

    def unwrap(self) -> Any:
        """The array of the library, for functions of `jax.numpy` and the like; it shares memory with this one."""
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


def raw_and_key(value: SupportsArray, weak: bool = False) -> KeyedRaw:
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


def wrap(value: SupportsArray, weak: bool = False) -> Any:
    """An `Array` that wraps an array of a library.

    Args:
        value: an array of NumPy, JAX or PyTorch, or an `Array`, which is returned as it is.
        weak: whether it is weak, for libraries with arrays that have no weak flag.

    Raises:
        OperandError: for anything else.
    """
    return value if isinstance(value, WrappedArray) else new_array(*raw_and_key(value, weak))


def unwrapped(value: object) -> Any:
    """The array that a value wraps, or the value itself; also in a tuple, as an index may be one."""
    if isinstance(value, tuple):
        parts: tuple[Any, ...] = value
        return tuple(map(unwrapped, parts))
    return value.unwrap() if isinstance(value, WrappedArray) else value


NUMBERS: frozenset[type] = frozenset(TYPE_OF_CATEGORY.values())
"""The types of Python numbers, without subclasses."""


def number_key(rules: RulesLike, value: Scalar) -> Key:
    """The key of a Python number; numbers that these rules treat alike share a key."""
    memory, kind = memory_of(rules), value.__class__
    key = memory.numbers.get((kind, value))
    if key is None:
        operand = as_operand(value)
        # All rule sets that "jax" may select read the same properties of a number.
        what_rules_see = get_rules(rules, in_jax=False).key_of(operand)
        key = memory.number_keys.setdefault(what_rules_see, Key(None, operand, None))
        memory.numbers[kind, value] = key
    return key


def as_key(value: Any, rules: RulesLike) -> KeyedRaw | None:
    """The array of a library or the number in an operand, and its key.

    Args:
        value: an `Array` or a `Variable`, an array of a known library, a NumPy scalar or a Python number.
        rules: the rules in force.

    Returns:
        None for anything else.

    Raises:
        OperandError: for arrays whose elements are not numbers.
    """
    if isinstance(value, WrappedArray):
        return value.unwrap(), value.key
    if cast("type[object]", type(value)) in NUMBERS:
        return value, number_key(rules, value)
    if isinstance(value, np.generic) and type(number := get_rules(rules, in_jax=False).read(value)) in NUMBERS:
        return number, number_key(rules, number)
    backend = backend_of(value)
    return None if backend is None else backend.with_key(value)


def as_option(value: Any) -> Any:
    """The number in an array without dimensions, which libraries do not take as an option; other values as they are."""
    return value.item() if library_of(value) is not None and value.shape == () else value


def is_operand(value: object) -> bool:
    """Whether a value is an array or a Python number."""
    return type(value) in NUMBERS or library_of(value) is not None


def not_an_operand(operand: object, name: str, position: int) -> OperandError:
    """The error for an operand that is neither an array nor a number.

    Args:
        operand: the operand.
        name: of the function.
        position: of the argument.
    """
    return OperandError(
        f"{name}: argument {position} must be an array or a Python number, got {type(operand).__name__}; use "
        f"supremum.asarray({letter(position)}) for lists and anything else that NumPy converts to an array"
    )


def holds_value(key: Key) -> bool:
    """Whether rules can read the value of an operand; other libraries may not have computed it yet."""
    return key.zero_d and key.backend is NUMPY


def with_value(key: Key, raw: Raw) -> Key:
    """The key of a 0-d array of NumPy, with its value; other keys as they are."""
    return Key(key.backend, replace(as_operand(raw), weak=key.weak), key.device) if holds_value(key) else key


def operands_of(keys: Sequence[Key], raws: Sequence[Raw], rules: RuleSet | None = None) -> tuple[Operand, ...]:
    """The operands of a decision, with the values of Python numbers, for explanations.

    Args:
        keys: of the operands.
        raws: the arrays and numbers.
        rules: the rules that decide; if they read values, 0-d arrays of NumPy have theirs.
    """
    reads = rules is not None and rules.reads_values
    seen = map(with_value, keys, raws) if reads else keys
    return tuple(key.operand if key.backend else as_operand(raw) for key, raw in zip(seen, raws, strict=True))


def joint_backend(backends: Iterable[Backend | None]) -> Backend:
    """The first library other than NumPy, which converts NumPy's arrays; NumPy if there is no other."""
    return next((backend for backend in backends if backend not in (None, NUMPY)), NUMPY)


def common_backend(keys: Sequence[Key], name: str) -> Backend:
    """The library that an operation runs in; any other library converts NumPy's arrays.

    Args:
        keys: of the operands.
        name: of the operation, for the error.

    Raises:
        LibraryError: for two libraries other than NumPy.
    """
    others = list(dict.fromkeys(key.backend for key in keys if key.backend not in (None, NUMPY)))
    if len(others) > 1:
        named = [f"{letter(i)} from {key.backend.name}" for i, key in enumerate(keys) if key.backend in others]
        stranger = next(i for i, key in enumerate(keys) if key.backend is others[1])
        raise LibraryError(
            f"{name}: all operands must be from one library, got {' and '.join(named)}; use "
            f"supremum.namespace({shown(others[0].name)}).asarray({letter(stranger)})"
        )
    return others[0] if others else NUMPY


def library_of(value: object) -> Backend | None:
    """The library of an array, wrapped or not; None for anything else."""
    return value.backend if isinstance(value, WrappedArray) else backend_of(value)


def check_library(backend: Backend, name: str, position: int, library: Backend | None) -> None:
    """Raise for an array that is from neither the library of the namespace nor NumPy.

    Args:
        backend: the library of the namespace.
        name: of the function.
        position: of the argument.
        library: the library of the argument; None if it is not an array.

    Raises:
        LibraryError: for any other library.
    """
    if library not in (None, NUMPY, backend):
        raise wrong_library(f"{name}: {letter(position)}, as the namespace,", backend, library, position)


def wrong_library(what: str, expected: Backend, actual: Backend, position: int = 1) -> LibraryError:
    """The error for an array of the wrong library.

    Args:
        what: the array, in words.
        expected: the library that it must be from.
        actual: its library.
        position: of the operand to convert.
    """
    fix = f"supremum.namespace({shown(expected.name)}).asarray({letter(position)})"
    return LibraryError(f"{what} must be an array of {expected.name}, got one of {actual.name}; use {fix}")
