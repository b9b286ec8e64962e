"""`Array`: an array of NumPy, JAX or PyTorch with operators that follow the rule set in force."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import array_api_compat
import numpy as np

from supremum.arrays import pytrees, ufuncs
from supremum.arrays.assignment import assign_result, check_mutable, refused_in_place, value_to_store
from supremum.arrays.backend_errors import computation_errors
from supremum.arrays.backends import Raw, backend_of
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.fix_trials import Trial
from supremum.arrays.functions.creation import ASTYPE
from supremum.arrays.functions.elementwise import ELEMENTWISE_OPERATIONS, FUNCTIONS, operator_named
from supremum.arrays.indexed_updates import At
from supremum.arrays.methods import method, missing_method
from supremum.arrays.namespaces import Namespace, namespace_of
from supremum.arrays.numpy_functions import route
from supremum.arrays.pass_through_function import PassThroughFunction
from supremum.arrays.torch_functions import torch_function
from supremum.arrays.wrapped import (
    WrappedArray,
    as_key,
    new_array,
    raw_and_key,
    register_as_pytree,
    return_arrays_of,
    unwrapped,
    wrap,
)
from supremum.decisions import PromotionError
from supremum.errors import ArgumentError, OperandError, hide_frames
from supremum.formats import argument_dtype, as_format
from supremum.rules import SCOPE, UNWRAPPED, Runtime
from supremum.typing import DTypeLike, SupportsArray


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    """The method of an in-place operator."""
    operator = operator_named(name)

    def method(self: Any, other: Any) -> Any:
        try:
            return self._assign(name, operator, other)
        except Exception as error:
            hide_frames(error)
            raise

    return method


def _reflected(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method of an operator for the right operand."""
    return lambda self, other: operator(other, self)


def _pair(first: Callable[[Any, Any], Any], second: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method of an operator that returns the results of two methods, such as `divmod`."""

    def method(self: Any, other: Any) -> Any:
        result = first(self, other)
        return result if result is NotImplemented else (result, second(self, other))

    return method


def _unary(name: str) -> Callable[..., Any]:
    """The method of an elementwise operation with one operand."""
    return ELEMENTWISE_OPERATIONS[name].call


def _parameters(x: Any, /, *args: Any, **options: Any) -> None:
    """The arguments of functions that methods call."""


_astype, _conj, _equal = ASTYPE.call, _unary("conj"), _unary("equal")
_reshape, _squeeze, _matrix_transpose, _permute_dims = (
    PassThroughFunction(name, _parameters).call for name in ("reshape", "squeeze", "matrix_transpose", "permute_dims")
)


_PLAIN_INDICES = frozenset({int, slice})

if TYPE_CHECKING:
    from supremum.arrays.array_types import ArrayTypes

    class _Base(WrappedArray, ArrayTypes["Array"]): ...
else:
    _Base = WrappedArray


class Array(_Base):
    """An array with operators, functions and a namespace that follow the rule set in force.

    It wraps an array of NumPy, JAX, PyTorch or any other library that follows the Python array API standard directly or
    through array-api-compat, such as CuPy, and shares its memory. An operation decides by the rules (of the innermost
    `use_rules`, otherwise the default), casts the operands, and calls the library's own function. The other operand may
    be an array of the library, an array of NumPy, which is converted, or a Python number. The order of the operands
    does not change the answer.

    Under rules with weak arrays, such as JAX's, an array made from a Python number is weak: it takes the dtype of the
    other operand. On JAX this is JAX's own `weak_type`; elsewhere the `Array` has the flag.

    On JAX an `Array` works in `jit`, `vmap`, `scan` and everything else that takes pytrees. A function to differentiate
    must return `.unwrap()` of its loss. Functions of `jax.numpy` do not take an `Array`: pass `array.unwrap()`, or use
    `supremum.ops` and `namespace("jax")`.
    If JAX is imported later, arrays become pytrees when the next array is made or computed.

    In-place assignment (`+=`, `array[0] = ...`) keeps the dtype. It refuses results that the framework of the rules
    would not store, and values that would lose a fraction, an imaginary part or range; `explain(a, b, operation="add",
    into=a)` says which. It writes to the memory of NumPy and PyTorch. JAX's arrays never change: `+=` makes a new
    array, and `.at` serves for other updates.

    Args:
        raw: an array of one of these libraries, or another `Array`. For numbers and lists use `asarray`.

    Raises:
        OperandError: for anything else, and for arrays whose elements are not numbers.

    >>> import numpy as np, supremum
    >>> a = supremum.Array(np.ones(3, "int8"))
    >>> with supremum.use_rules("torch"):
    ...     a + np.ones(3, "uint8")
    Array([2, 2, 2], dtype=int16)
    >>> with supremum.use_rules("jax-x32"):
    ...     1.5 * a
    Array([1.5, 1.5, 1.5], dtype=float32, weak_type=True)
    """

    __slots__ = ()

    # NumPy's arrays and their subclasses defer to an operand with a higher priority.
    __array_priority__ = 1000

    def __init__(self, raw: SupportsArray) -> None:
        register_as_pytree()
        super().__init__(*raw_and_key(raw))

    @staticmethod
    def runtime_of(operands: Sequence[Any]) -> Runtime:
        """The runtime of an operation on these operands, where `explain` tries its fixes."""
        rules = SCOPE.get().rules
        keys = [keyed_raw[1] for operand in operands if (keyed_raw := as_key(operand, rules)) is not None]
        return Trial(keys) if len(keys) == len(operands) else UNWRAPPED

    # Properties

    @property
    def _data(self) -> Any:
        """Raise: NumPy's masked arrays read this attribute of the other operand."""
        # NumPy would hide an AttributeError from the user.
        raise OperandError(
            "the left operand must not be a masked array, which follows NumPy's rules; use masked.filled(...) or "
            "array.unwrap()"
        )

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
        """The number of bytes of its elements."""
        return self.size * self.itemsize

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element."""
        return self.dtype.itemsize

    @property
    def T(self) -> Array:  # noqa: N802 (the standard's name)
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ArgumentError(f"T needs two dimensions, got {self.ndim}; use mT or permute_dims")
        return self.mT

    @property
    def mT(self) -> Array:  # noqa: N802 (the standard's name)
        """The transpose of every matrix in a stack."""
        return _matrix_transpose(self)

    @property
    def at(self) -> At:
        """Updated copies of this array, as with JAX's own `at`, under the rules in force.

        >>> import supremum
        >>> supremum.namespace("jax").zeros(3).at[1].set(5)
        Array([0., 5., 0.], dtype=float32)
        """
        if self.backend.mutable:
            raise AttributeError(f"arrays of {self.backend.name} have no `at`; use array[index] = value")
        return At(self)

    # Conversions

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Array:
        """A strong copy in another dtype. The rules never refuse an explicit cast.

        Args:
            dtype: a dtype or its name.
            copy: whether to copy an array that has the dtype already.

        Raises:
            ArgumentError: for a name such as `"i8"`, which is int8 here and int64 in NumPy.
            RuntimeDtypeError: if the library does not have the dtype.
        """
        if copy is True:
            return _astype(self, dtype)
        if copy is False and argument_dtype(dtype) == self.dtype and not self.weak_type:
            return self
        return _astype(self, dtype, copy=copy)

    def to_device(self, device: object, /, *, stream: object = None) -> Array:
        """A copy on another device.

        Args:
            device: the device, in the library's notation.
            stream: as in the array API standard.
        """
        with computation_errors("to_device", self.backend, self, device, stream=stream):
            return self._like(array_api_compat.to_device(self._raw, device, stream=stream))

    def block_until_ready(self) -> Array:
        """This array, once JAX has computed it; other libraries have computed it already, or wait when it is read."""
        if self.backend.in_jax:
            self._raw.block_until_ready()
        return self

    def item(self) -> bool | int | float | complex:
        """The only element, as a Python number."""
        with computation_errors("item", self.backend, self):
            return self._raw.item()

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self._raw.tolist()

    def _like(self, raw: Raw) -> Array:
        """An `Array` made from an array of the library, weak if this one is weak."""
        key: Any = self.key
        return new_array(*key.backend.with_key(raw, key.weak))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.backend.numpy(self._raw), dtype, copy=copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return self._raw.__dlpack__(**{name: value for name, value in options.items() if value is not None})

    def __dlpack_device__(self) -> Any:
        return self._raw.__dlpack_device__()

    def __array_namespace__(self, *, api_version: str | None = None) -> Namespace:
        return namespace_of(self.backend, api_version)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        try:
            return ufuncs.array_ufunc(ufunc, method, inputs, options)
        except Exception as error:
            hide_frames(error)
            raise

    def __array_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        return route(function, args, kwargs)

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        try:
            return torch_function(cls, function, args, kwargs or {})
        except Exception as error:
            hide_frames(error)
            raise

    def __reduce__(self) -> Any:
        return wrap, (self._raw, self.weak_type)

    def __copy__(self) -> Array:
        return self._like(self._raw)

    def __repr__(self) -> str:
        return _text_of(self)

    # Elements

    def __getitem__(self, index: Any) -> Array:
        key: Any = self.key
        with computation_errors("indexing", key.backend, self, index):
            return self._like(key.backend.item(self._raw, unwrapped(index)))

    def __setitem__(self, index: Any, value: Any) -> None:
        backend: Any = self.key.backend
        if not backend.mutable:
            check_mutable(self, "x = x.at[index].set(value)")
        accepted = value_to_store(self, value)
        place = index if index.__class__ in _PLAIN_INDICES else unwrapped(index)
        with computation_errors("assignment", backend, self, index, value):
            self._raw[place] = accepted

    def __len__(self) -> int:
        if not self.shape:
            raise OperandError("a 0-d Array has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool(self.backend.xp.any(_equal(self, value).unwrap()))

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

    # Operators

    def _assign(self, name: str, operator: Callable[[Any, Any], Any], other: Any) -> Any:
        """The left side after an in-place operator."""
        try:
            result = operator(self, other)
        except (PromotionError, RuntimeDtypeError):
            with refused_in_place(self, name, (self, other)):
                raise
        if result is NotImplemented:
            return result
        return assign_result(self, result, name, (self, other))

    # A writable array must not be a key of a dict; JAX's arrays are not hashable either.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    # Functions of NumPy

    sort: ClassVar[property] = missing_method("sort", "x = np.sort(x)")
    fill: ClassVar[property] = missing_method("fill", "x[...] = value, or x = x.at[...].set(value) on JAX")

    def conj(self) -> Array:
        """The complex conjugate; real arrays as they are."""
        return _conj(self) if as_format(self.dtype).category == "complex" else self

    conjugate = conj

    def flatten(self) -> Array:
        """A copy of the elements in one dimension."""
        return self.reshape(-1, copy=True)

    def transpose(self, *axes: int | Sequence[int]) -> Array:
        """The array with its dimensions in another order.

        Args:
            axes: the dimensions in the new order, as a tuple or as numbers; none to reverse them.
        """
        return _permute_dims(self, _as_tuple(axes) or (*range(self.ndim - 1, -1, -1),))

    def reshape(self, *shape: int | Sequence[int], copy: bool | None = None) -> Array:
        """The same elements in another shape.

        Args:
            shape: the shape, as a tuple or as numbers; -1 stands for the length that is left.
            copy: as in the array API standard.
        """
        return _reshape(self, _as_tuple(shape), **({} if copy is None else {"copy": copy}))

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Array:
        """The array without dimensions of length one.

        Args:
            axis: the dimensions to remove; None for all.
        """
        axes = tuple(i for i, length in enumerate(self.shape) if length == 1) if axis is None else axis
        return _squeeze(self, axis=axes)


_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip
_UNARY = {"pos": "positive", "neg": "negative", "abs": "abs", "invert": "bitwise_invert"}
_METHODS = (
    "sum", "prod", "mean", "std", "var", "any", "all", "min", "max", "argmin", "argmax", "cumsum", "cumprod",
    "argsort", "searchsorted", "round", "nonzero", "dot", "copy", "ravel", "repeat", "swapaxes", "take",
)  # fmt: skip


def _add_methods() -> None:
    """Add the methods that `ArrayTypes` has the types of."""
    for symbol, name in _BINARY.items():
        operator = operator_named(name)
        for prefix, each in (("", operator), ("r", _reflected(operator)), ("i", _in_place(name))):
            setattr(Array, f"__{prefix}{symbol}__", each)
    for prefix in ("", "r"):
        quotient, remainder = (getattr(Array, f"__{prefix}{symbol}__") for symbol in ("floordiv", "mod"))
        setattr(Array, f"__{prefix}divmod__", _pair(quotient, remainder))
    for symbol, name in _COMPARISONS.items():
        setattr(Array, f"__{symbol}__", operator_named(name))
    for symbol, name in _UNARY.items():
        setattr(Array, f"__{symbol}__", _unary(name))
    for name in ("real", "imag"):
        setattr(Array, name, property(_unary(name)))
    for name in _METHODS:
        setattr(Array, name, method(name))
    setattr(Array, "clip", FUNCTIONS["clip"].call)  # noqa: B010 (the type is that of `ArrayTypes`)


def _as_tuple(numbers: tuple[Any, ...]) -> tuple[Any, ...]:
    """The numbers of a method that takes them one by one or as one tuple."""
    return tuple(numbers[0]) if len(numbers) == 1 and isinstance(numbers[0], (tuple, list)) else numbers


def _text_of(array: Array) -> str:
    """The text of NumPy for the elements, with the dtype and the weak flag."""
    raw, kind = array.unwrap(), type(array).__name__
    if backend_of(raw) is None:
        return f"{kind}({raw!r})"  # part of a tree that JAX works on
    extra = ", weak_type=True" if array.weak_type else ""
    extra += f", name={name!r}" if (name := getattr(array, "name", "")) else ""
    try:
        body = np.array2string(np.asarray(array), separator=", ", prefix=f"{kind}(")
    except Exception:  # traced, or not readable
        return f"{kind}({raw!r}{extra})"
    return f"{kind}({body}, dtype={array.dtype}{extra})"


_add_methods()
return_arrays_of(Array, pytrees.register)
