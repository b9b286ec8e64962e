"""`Array`: an array of NumPy, JAX or PyTorch whose operators follow the rule set in force."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from supremum.arrays import protocols, pytrees
from supremum.arrays.assignment import accepted_value, assigned, refused_in_place
from supremum.arrays.backend_errors import computation_errors, raise_computation_error
from supremum.arrays.backends import Key, Raw, backend_of
from supremum.arrays.conversion import cast, to_device
from supremum.arrays.fix_trials import Trial
from supremum.arrays.indexed_updates import At
from supremum.arrays.namespaces import Namespace, namespace_of
from supremum.arrays.numpy_functions import route
from supremum.arrays.operand_keys import as_key
from supremum.arrays.operators import OperatorMethods, apply_operator
from supremum.arrays.wrapped import WrappedArray, keyed, raw_and_key, unwrapped_index
from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format
from supremum.rules import SCOPE, UNWRAPPED, Runtime

_is_pytree = False
"""Whether JAX knows `Array`; JAX may be imported after arrays have been made."""
_registering = threading.Lock()
_modules, _new = sys.modules, object.__new__


def new_array(raw: Raw, key: Key) -> Array:
    """An `Array` of an array of a library and its key."""
    if not _is_pytree and "jax" in _modules:
        register_as_pytree()
    array: Any = _new(Array)  # by no constructor, which costs as much as the rest
    array._raw = raw
    array._key = key
    return array


def register_as_pytree() -> None:
    """Register `Array` as a pytree of JAX, once, if JAX is loaded; JAX is never imported for that."""
    global _is_pytree
    with _registering:
        if not _is_pytree and _modules.get("jax") is not None:
            pytrees.register(Array)
            _is_pytree = True


def wrap(raw: Any, weak: bool = False) -> Array:
    """An `Array` of an array of a library.

    Args:
        raw: an array of NumPy, JAX or PyTorch, or an `Array`, which is returned as it is.
        weak: whether it is weak, where the library's arrays do not say so themselves.

    Raises:
        OperandError: for anything else.
    """
    return raw if isinstance(raw, Array) else new_array(*raw_and_key(raw, weak))


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    """The method of an operator that assigns."""

    def method(self: Any, other: Any) -> Any:
        return self._assign(name, other)

    return method


def _method(name: str) -> Callable[..., Array]:
    """The method that is the function of the namespace under the same name."""

    def method(self: Array, *args: Any, **options: Any) -> Array:
        return getattr(self.__array_namespace__(), name)(self, *args, **options)

    method.__name__, method.__qualname__ = name, f"Array.{name}"
    method.__doc__ = f"`{name}` of the array's namespace, with the same arguments, as `axis` and `keepdims`."
    return method


_METHODS = OperatorMethods(new_array)
_unary, _binary, _left = _METHODS.unary, _METHODS.binary, _METHODS.left


class Array(WrappedArray):
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
    An array made before JAX is imported is a pytree as soon as another one is made or computed afterwards.

    Assigning in place (`+=`, `array[0] = ...`) keeps the dtype: what the framework of the rules would not store there
    is refused, and so is what would lose a fraction, an imaginary part or a range; `explain(a, b, operation="add",
    into=a)` says which. NumPy's and PyTorch's memory is written to; JAX's arrays are never changed: there `+=` gives a
    new one, and `.at` the rest.

    Args:
        raw: an array of such a library, or another `Array`. For numbers and lists use `asarray`.

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

    # NumPy's arrays and their subclasses leave operators to an operand of higher priority.
    __array_priority__ = 1000

    def __init__(self, raw: Any) -> None:
        if not _is_pytree:
            register_as_pytree()
        super().__init__(*raw_and_key(raw))

    @staticmethod
    def runtime_beside(operands: Sequence[Any]) -> Runtime:
        """The runtime of an operation on these operands, on which `explain` tries its fixes."""
        rules = SCOPE.get().rules
        keys = [found[1] for operand in operands if (found := as_key(operand, rules)) is not None]
        return Trial(keys) if len(keys) == len(operands) else UNWRAPPED

    # Properties

    @property
    def _data(self) -> Any:
        """NumPy's masked arrays read this attribute of the other operand."""
        # NumPy passes any error but an AttributeError on to the user.
        raise OperandError(
            "a masked array on the left of an operator computes by NumPy's rules; use masked.filled(...) or "
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
        """The bytes of its elements."""
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> Array:  # noqa: N802 (the standard's name)
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ArgumentError(f"T needs a matrix, got an Array of {self.ndim} dimensions; use mT or permute_dims")
        return self.mT

    @property
    def mT(self) -> Array:  # noqa: N802 (the standard's name)
        """The transposes of a stack of matrices."""
        return self.__array_namespace__().matrix_transpose(self)

    @property
    def at(self) -> At[Array]:
        """Changed copies of this array, as with JAX's own `at`, under the rules in force.

        >>> import supremum
        >>> supremum.namespace("jax").zeros(3).at[1].set(5)
        Array([0., 5., 0.], dtype=float32)
        """
        if self.backend.mutable:
            raise AttributeError(f"only arrays of JAX have `at`; one of {self.backend.name} can be assigned to")
        return At(self, new_array)

    # Conversions

    def astype(self, dtype: Any, *, copy: bool = True) -> Array:
        """A copy in another dtype, strong: a cast by hand is never refused.

        Args:
            dtype: a dtype or its name.
            copy: whether an array that has that dtype already is copied too.

        Raises:
            RuntimeDtypeError: if the library does not have the dtype.
        """
        if copy is False and as_format(dtype).dtype == self.dtype and not self.weak_type:
            return self
        return new_array(*cast(self, dtype, copy=copy))

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """A copy on another device.

        Args:
            device: as the library names it.
            stream: as in the array API standard.
        """
        return new_array(*to_device(self, device, stream))

    def item(self) -> bool | int | float | complex:
        """The only element, as a Python number."""
        with computation_errors("item", self.backend, self):
            return self._raw.item()

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self._raw.tolist()

    def _like(self, raw: Raw) -> Array:
        """An `Array` of an array that is as weak as this one."""
        key = self.key
        assert key.backend is not None
        return new_array(*keyed(key.backend, raw, key.weak))

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
        return namespace_of(self.backend, new_array, api_version)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return protocols.array_ufunc(new_array, ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        return route(new_array, function, args, kwargs)

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        return protocols.torch_function(new_array, cls, function, args, kwargs or {})

    def __reduce__(self) -> Any:
        return wrap, (self._raw, self.weak_type)

    def __copy__(self) -> Array:
        return self._like(self._raw)

    def __repr__(self) -> str:
        return _shown(self)

    # Elements

    def __getitem__(self, index: Any) -> Array:
        try:
            return self._like(self._raw[unwrapped_index(index)])
        except Exception as error:
            raise_computation_error("indexing", self.backend, (self, index), {}, error)
            raise

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.backend.mutable:
            raise OperandError("arrays of JAX are immutable; use x = x.at[index].set(value)")
        with computation_errors("assigning to elements", self.backend, self, index, value):
            self._raw[unwrapped_index(index)] = accepted_value(self, value)

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

    # Operators

    def _assign(self, name: str, other: Any) -> Any:
        """What an operator that assigns does: the result in the place of this array."""
        with refused_in_place(self, name, (self, other)):
            result = apply_operator(name, (self, other))
        if result is NotImplemented:
            return result
        raw, key = assigned(self, result, name, (self, other))
        return self if raw is self._raw else new_array(raw, key)

    real, imag = property(_unary("real")), property(_unary("imag"))

    __pos__, __neg__ = _unary("positive"), _unary("negative")
    __abs__, __invert__ = _unary("abs"), _unary("bitwise_invert")

    (__add__, __radd__), __iadd__ = _binary("add"), _in_place("add")
    (__sub__, __rsub__), __isub__ = _binary("subtract"), _in_place("subtract")
    (__mul__, __rmul__), __imul__ = _binary("multiply"), _in_place("multiply")
    (__truediv__, __rtruediv__), __itruediv__ = _binary("divide"), _in_place("divide")
    (__floordiv__, __rfloordiv__), __ifloordiv__ = _binary("floor_divide"), _in_place("floor_divide")
    __divmod__, __rdivmod__ = _METHODS.divmod()
    (__mod__, __rmod__), __imod__ = _binary("remainder"), _in_place("remainder")
    (__pow__, __rpow__), __ipow__ = _binary("pow"), _in_place("pow")
    (__matmul__, __rmatmul__), __imatmul__ = _METHODS.matmul(), _in_place("matmul")

    (__and__, __rand__), __iand__ = _binary("bitwise_and"), _in_place("bitwise_and")
    (__or__, __ror__), __ior__ = _binary("bitwise_or"), _in_place("bitwise_or")
    (__xor__, __rxor__), __ixor__ = _binary("bitwise_xor"), _in_place("bitwise_xor")
    (__lshift__, __rlshift__), __ilshift__ = _binary("bitwise_left_shift"), _in_place("bitwise_left_shift")
    (__rshift__, __rrshift__), __irshift__ = _binary("bitwise_right_shift"), _in_place("bitwise_right_shift")

    __eq__, __ne__ = _left("equal"), _left("not_equal")  # pyright: ignore[reportAssignmentType] (elementwise)
    __lt__, __le__, __gt__, __ge__ = _left("less"), _left("less_equal"), _left("greater"), _left("greater_equal")
    # An array that can be written to cannot be a key of a dict; neither can JAX's arrays.
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    # Functions of the namespace

    sum, prod, mean, std, var = _method("sum"), _method("prod"), _method("mean"), _method("std"), _method("var")
    min, max, argmin, argmax = _method("min"), _method("max"), _method("argmin"), _method("argmax")
    any, all = _method("any"), _method("all")

    def reshape(self, *shape: Any, copy: bool | None = None) -> Array:
        """The same elements in another shape.

        Args:
            shape: it, as a tuple or number by number; one of them may be -1, what remains.
            copy: as in the array API standard.
        """
        lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self.__array_namespace__().reshape(self, tuple(lengths), **({} if copy is None else {"copy": copy}))

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Array:
        """The array without some dimensions of length one.

        Args:
            axis: which; None for all.
        """
        found = tuple(i for i, length in enumerate(self.shape) if length == 1) if axis is None else axis
        return self.__array_namespace__().squeeze(self, axis=found)


def _shown(array: Array) -> str:
    """The text that NumPy has for it, and whether it is weak."""
    raw, kind = array.unwrap(), type(array).__name__
    if backend_of(raw) is None:
        return f"{kind}({raw!r})"  # JAX is working on a tree
    extra = ", weak_type=True" if array.weak_type else ""
    extra += f", name={name!r}" if (name := getattr(array, "name", "")) else ""
    try:
        body = np.array2string(np.asarray(array), separator=", ", prefix=f"{kind}(")
    except Exception:  # traced, or where it cannot be read
        return f"{kind}({raw!r}{extra})"
    return f"{kind}({body}, dtype={array.dtype}{extra})"


register_as_pytree()
