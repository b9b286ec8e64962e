"""`Array`: an array of NumPy, JAX or PyTorch whose operators follow the rule set in force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from supremum.argument_checks import flag
from supremum.arrays import protocols
from supremum.arrays.assignment import accepted_value, changed
from supremum.arrays.backend_errors import raise_as_ours
from supremum.arrays.backends import Backend, Key, Raw, backend_names, backend_of
from supremum.arrays.dispatch import seen
from supremum.arrays.fix_trials import Trial
from supremum.arrays.methods import Methods
from supremum.arrays.operators import Operators
from supremum.errors import ArgumentError, OperandError
from supremum.formats import DType, as_format
from supremum.rules.fixes import Runtime
from supremum.rules.scope import SCOPE
from supremum.rules.typed_casts import UNWRAPPED


class Array(Operators, Methods):
    """An array whose operators, functions and namespace follow the rule set in force.

    It wraps an array of NumPy, JAX, PyTorch or any library that follows the Python array API standard, as CuPy with the
    help of array-api-compat, and shares its memory. An operation decides by the rules (the innermost
    `use_rules`, else the default), casts what the decision says, and calls the library's own function. The answer is
    the same in both orders of operands, whatever stands on the other side: an array of the library itself, one of
    NumPy (which is adopted), or a Python number.

    Under rules that know weak arrays, those of JAX, an array made of a Python number is weak: it gives way to the dtype
    of the next operand. On JAX that is JAX's own `weak_type`; elsewhere the `Array` carries it.

    On JAX it works in `jit`, `vmap`, `scan` and all that takes pytrees; a function to be differentiated returns
    `.unwrap()` of its loss. `jnp.add(x, array)` and other functions of `jax.numpy` do not take an `Array`: give them
    `array.unwrap()`, or use `supremum.ops` and `namespace("jax")`.

    Assigning in place (`+=`, `array[0] = ...`) keeps the dtype: what the framework of the rules would not store there
    is refused, and so is what would lose a fraction, an imaginary part or a range; `explain(a, b, operation="add",
    into=a)` says which. NumPy's and PyTorch's memory is written to; JAX's arrays are never changed: there `+=` gives a
    new one, and `.at` the rest.

    Args:
        raw: an array of such a library, or another `Array`. For numbers and lists there is `asarray`.

    Raises:
        OperandError: for anything else, and for arrays of what is no number.

    >>> import numpy as np, supremum
    >>> a = supremum.Array(np.ones(3, "int8"))
    >>> with supremum.use_rules("torch"):
    ...     a + np.ones(3, "uint8")
    Array([2, 2, 2], dtype=int16)
    >>> with supremum.use_rules("jax-x32"):
    ...     1.5 * a
    Array([1.5, 1.5, 1.5], dtype=float32, weak_type=True)
    """

    __slots__ = ("__weakref__", "_key", "_raw")
    _raw: Raw
    _key: Key

    # NumPy's arrays and subclasses leave operators to ours.
    __array_priority__ = 1000

    def __init__(self, raw: Any) -> None:
        found = wrap(raw)
        self._raw, self._key = found.unwrap(), found.key

    @staticmethod
    def of(raw: Raw, key: Key) -> Array:
        """An array of which everything is known already; for whoever made it."""
        array = Array.__new__(Array)
        array._raw, array._key = raw, key
        return array

    @staticmethod
    def of_leaf(leaf: Any, weak: bool) -> Array:
        """An array of what JAX puts into trees, which need not be an array while it works on them."""
        backend = backend_of(leaf) if weak else None
        array = Array.__new__(Array)
        array._raw = leaf
        if backend is not None:
            array._key = backend.key_of(leaf, weak=True)
        return array

    def unwrap(self) -> Raw:
        """The array of the library, which shares memory with this one: the way into functions of `jax.numpy`."""
        return self._raw

    @staticmethod
    def runtime_beside(operands: Sequence[Any]) -> Runtime:
        """What would carry out an operation of these operands, so that `explain` tries its fixes on it."""
        rules = SCOPE.get().rules
        keys = [found[0] for operand in operands if (found := seen(operand, rules)) is not None]
        return Trial(keys) if len(keys) == len(operands) else UNWRAPPED

    # What is known of it

    @property
    def key(self) -> Key:
        """What prepared operations are kept by."""
        # No `__getattr__` does this: with one, every attribute would be found more slowly.
        try:
            return self._key
        except AttributeError:  # looked at for the first time, after JAX has put a tree together
            self._key = self.backend.key_of(self._raw)
            return self._key

    @property
    def _data(self) -> Any:
        """What NumPy's masked arrays look for in the other operand."""
        # Any error but an AttributeError gets through to the user.
        raise OperandError(
            "a masked array answers for itself, by NumPy's rules, when an Array stands on its right: give "
            "masked.filled(...) or array.unwrap()"
        )

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
        # What JAX puts in trees while it works on them has a dtype too.
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
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._raw.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> Any:
        """Where it is, as the library says."""
        return self.backend.device_of(self._raw)

    @property
    def T(self) -> Array:  # noqa: N802 (the standard's name)
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ArgumentError(f"T is of matrices, and this Array has {self.ndim} dimensions: use mT or permute_dims")
        return self.mT

    @property
    def mT(self) -> Array:  # noqa: N802 (the standard's name)
        """The transposes of a stack of matrices."""
        return self.__array_namespace__().matrix_transpose(self)

    @property
    def at(self) -> At:
        """What has changed copies of this array, as with JAX's own `at`, under the rules in force.

        >>> import supremum
        >>> supremum.namespace("jax").zeros(3).at[1].set(5)
        Array([0., 5., 0.], dtype=float32)
        """
        if self.backend.mutable:
            raise AttributeError(f"only arrays of JAX have `at`; one of {self.backend.name} can be assigned to")
        return At(self)

    # Other forms

    def astype(self, dtype: Any, *, copy: bool = True) -> Array:
        """A copy in another dtype, strong: a cast by hand is never refused.

        Args:
            dtype: a dtype or its name.
            copy: whether an array that has that dtype already is copied too.

        Raises:
            RuntimeDtypeError: if the library does not have the dtype.
        """
        target = as_format(dtype).dtype
        if copy is not True:
            flag("copy", copy)
        if not copy and target == self.dtype and not self.weak_type:
            return self
        try:
            return wrap(self.backend.astype(self._raw, target, copy=copy))
        except Exception as error:
            self._fail("astype", error, self, dtype)
            raise

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """A copy on another device.

        Args:
            device: as the library names it.
            stream: as in the array API standard.
        """
        from array_api_compat import to_device  # pyright: ignore[reportUnknownVariableType]

        try:
            return self._like(to_device(self._raw, device, stream=stream))
        except Exception as error:
            self._fail("to_device", error, self, device, stream=stream)
            raise

    def item(self) -> bool | int | float | complex:
        """The only element, as a Python number."""
        try:
            return self._raw.item()
        except Exception as error:
            self._fail("item", error, self)
            raise

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self._raw.tolist()

    def _like(self, raw: Raw) -> Array:
        """Elements of this array elsewhere: as weak as it is."""
        return wrap(raw, self.weak_type)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.backend.numpy(self._raw), dtype, copy=copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return self._raw.__dlpack__(**{name: value for name, value in options.items() if value is not None})

    def __dlpack_device__(self) -> Any:
        return self._raw.__dlpack_device__()

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        from supremum.arrays.namespaces import namespace  # it imports this module

        return namespace(self.backend.name, api_version=api_version)

    __array_ufunc__ = protocols.array_ufunc
    __array_function__ = protocols.array_function
    __torch_function__ = classmethod(protocols.torch_function)

    def __reduce__(self) -> Any:
        return wrap, (self._raw, self.weak_type)

    def __copy__(self) -> Array:
        return self._like(self._raw)

    def __repr__(self) -> str:
        return _shown(self)

    # Elements

    def __getitem__(self, index: Any) -> Array:
        try:
            return self._like(self._raw[plain_index(index)])
        except Exception as error:
            self._fail("indexing", error, self, index)
            raise

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.backend.mutable:
            raise OperandError("arrays of JAX are never changed: write `x = x.at[index].set(value)`")
        try:
            self._raw[plain_index(index)] = accepted_value(self, value)
        except Exception as error:
            self._fail("assigning to elements", error, self, index, value)
            raise

    def _fail(self, name: str, error: Exception, *given: Any, **options: Any) -> None:
        """Raise an error of the library as one of ours, if it is one."""
        raise_as_ours(name, self.backend, given, options, error)

    def __len__(self) -> int:
        if not self.shape:
            raise OperandError("a 0-d Array has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool(self.backend.xp.any((self == value).unwrap()))

    def __bool__(self) -> bool:
        return bool(self._raw)

    def __int__(self) -> int:
        return int(self._raw)

    def __float__(self) -> float:
        return float(self._raw)

    def __complex__(self) -> complex:
        return complex(self._raw)

    def __index__(self) -> int:
        return self._raw.__index__()

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self.shape else format(repr(self), spec)


class At:
    """Where a changed copy of an array differs from it.

    Args:
        array: an array of JAX.
    """

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Changes:
        return Changes(self.array, plain_index(index))


class Changes:
    """Changed copies of an array of JAX, which keep its dtype: the rules decide as for assignment and `+=`.

    Args:
        array: the array.
        index: where it is changed.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any) -> None:
        self.array = array
        self.index = index

    def get(self, **options: Any) -> Array:
        """The elements; options as of JAX's own."""
        try:
            return self._wrapped(self.array.unwrap().at[self.index].get(**options))
        except Exception as error:
            raise_as_ours("at[...].get", self.array.backend, (self.array, self.index), options, error)
            raise

    def set(self, value: Any, **options: Any) -> Array:
        """With other elements."""
        accepted = accepted_value(self.array, value)
        try:
            return self._wrapped(self.array.unwrap().at[self.index].set(accepted, **options))
        except Exception as error:
            raise_as_ours("at[...].set", self.array.backend, (self.array, self.index, value), options, error)
            raise

    def add(self, value: Any, **options: Any) -> Array:
        """With a value added."""
        return self._do("add", "add", value, options)

    def subtract(self, value: Any, **options: Any) -> Array:
        """With a value subtracted."""
        return self._do("subtract", "subtract", value, options)

    def multiply(self, value: Any, **options: Any) -> Array:
        """Multiplied by a value."""
        return self._do("multiply", "multiply", value, options)

    def min(self, value: Any, **options: Any) -> Array:
        """With the lesser of both."""
        return self._do("minimum", "min", value, options)

    def max(self, value: Any, **options: Any) -> Array:
        """With the greater of both."""
        return self._do("maximum", "max", value, options)

    def _do(self, operation: str, name: str, value: Any, options: dict[str, Any]) -> Array:
        def change(raw: Raw, given: Raw) -> Raw:
            return getattr(raw.at[self.index], name)(given, **options)

        try:
            return self._wrapped(changed(self.array, operation, value, change))
        except Exception as error:
            raise_as_ours(f"at[...].{name}", self.array.backend, (self.array, self.index, value), options, error)
            raise

    def _wrapped(self, raw: Raw) -> Array:
        return wrap(raw, self.array.weak_type)


def wrap(raw: Any, weak: bool = False) -> Array:
    """An `Array` of what a library has.

    Args:
        raw: an array of NumPy, JAX or PyTorch, or an `Array`, which is returned as it is.
        weak: whether it is weak, where the library's arrays do not say so themselves.

    Raises:
        OperandError: for anything else.
    """
    if isinstance(raw, Array):
        return raw
    backend = backend_of(raw)
    if backend is None:
        raise OperandError(
            f"a {type(raw).__name__} is no array of {', '.join(backend_names())}: supremum.asarray makes one of "
            "numbers, lists and what NumPy knows"
        )
    plain = backend.plain(raw)
    return Array.of(plain, backend.key_of(plain, weak))


def plain_index(index: Any) -> Any:
    """An index without an `Array` in it."""
    if isinstance(index, tuple):
        parts: tuple[Any, ...] = index
        return tuple(map(plain_index, parts))
    return index.unwrap() if isinstance(index, Array) else index


def _shown(array: Array) -> str:
    """As NumPy shows it, and whether it is weak."""
    raw, kind = array.unwrap(), type(array).__name__
    if backend_of(raw) is None:
        return f"{kind}({raw!r})"  # what JAX puts in trees while it works on them
    extra = ", weak_type=True" if array.weak_type else ""
    extra += f", name={name!r}" if (name := getattr(array, "name", "")) else ""
    try:
        body = np.array2string(np.asarray(array), separator=", ", prefix=f"{kind}(")
    except Exception:  # traced, or where it cannot be read
        return f"{kind}({raw!r}{extra})"
    return f"{kind}({body}, dtype={array.dtype}{extra})"
