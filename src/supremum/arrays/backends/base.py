"""`Backend`, the interface to a library; `Key`, the properties of an operand; `CallPlan`, the steps of an operation."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from supremum.decisions import Decision, ResultType
from supremum.errors import OperandError, UnknownDtypeError
from supremum.formats import DType, as_format
from supremum.number_conversion import Steps
from supremum.operands import Operand
from supremum.operations import Operation
from supremum.typing import ArrayLike, SupportsArray

Raw: TypeAlias = SupportsArray
"""An array of a library, as the library has it."""


class Key:
    """Everything about an operand that a prepared operation depends on. Equal keys are one object.

    Args:
        backend: the library; None for a Python number.
        operand: the operand for promotion; every array that is not 0-d has one dimension here.
        device: the device, for libraries that prepare operations per device.
    """

    __slots__ = ("backend", "device", "dtype", "operand", "weak", "zero_d")

    def __init__(self, backend: Backend | None, operand: Operand, device: Hashable) -> None:
        self.backend: Backend | None = backend
        self.operand: Operand = operand
        self.device: Hashable = device
        self.dtype: DType | None = operand.dtype
        self.weak: bool = operand.weak
        self.zero_d: bool = operand.ndim == 0

    def __repr__(self) -> str:
        return f"Key({self.backend.name if self.backend else 'Python'}, {self.operand}, {self.device})"


_KEYS: dict[Hashable, Key] = {}


def array_key(backend: Backend, dtype: DType, weak: bool, zero_d: bool, device: Hashable = None) -> Key:
    """The key of an array."""
    row = as_format(dtype)
    # Only bool has no weak form.
    operand = Operand(row.category, row.dtype, weak and row.category != "bool", 0 if zero_d else 1)
    # If two threads get here at once, both use the key that is set first.
    return _KEYS.setdefault((backend, operand, device), Key(backend, operand, device))


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The steps of an operation after its decision.

    Args:
        operation: its row.
        keys: its operands.
        compute: the dtypes that the operands are cast to.
        result: the dtype that the result is cast to, and whether it is weak.
        rules: the name of the rule set that decided.
        build: makes the function of the converted operands, from the backend and the plan; None for the library's
            elementwise function of the operation's name.
        options: the options of the call, for `build`.
        number_steps: the formats that each Python number is converted to, as in `Verdict`.
        decision: the decision, for errors; it finds casts where the library has no function.
        gives_indices: whether the result keeps the library's dtype of indices instead.
    """

    operation: Operation
    keys: tuple[Key, ...]
    compute: tuple[DType, ...]
    result: ResultType
    rules: str
    build: Build | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    number_steps: tuple[Steps, ...] = ()
    decision: Decision | None = None
    gives_indices: bool = False

    @property
    def of_columns(self) -> DType | None:
        """A dtype of the plan that only columns of data frames have; None if arrays have all of them."""
        dtypes = (*self.compute, self.result.dtype)
        return next((dtype for dtype in dtypes if not as_format(dtype).is_of_arrays), None)


Build: TypeAlias = "Callable[[Backend, CallPlan], Callable[..., Raw]]"


class Backend(ABC):
    """A library with arrays that `Array` can wrap.

    Attributes:
        name: the name that users know.
        namespace: the module that follows the Python array API standard for this library.
        mutable: whether its arrays can be written to.
        passed_through: its own errors that `ComputationError` does not replace.
        in_jax: whether JAX holds its arrays, which have a weak flag, and need JAX's flags to have 64 bits.
        rules: the name of the rule set that its own functions follow; empty if there is none.
    """

    name: str
    namespace: str
    mutable: bool = True
    in_jax: bool = False
    rules: str = ""
    passed_through: tuple[type[Exception], ...] = ()

    def check_computes(self, name: str, dtypes: Iterable[DType]) -> None:  # noqa: B027 (most libraries compute in all formats they have)
        """Raise for formats that the library has but does not compute in.

        Args:
            name: of the function.
            dtypes: the dtypes of its arguments.

        Raises:
            RuntimeDtypeError: if one of the dtypes is such a format.
        """

    @cached_property
    def xp(self) -> Any:
        """The namespace of the library in the Python array API standard."""
        return importlib.import_module(self.namespace)

    def __init__(self) -> None:
        self._known: dict[Hashable, Key] = {}  # by the `_key_parts` of an array

    def function(self, name: str) -> Callable[..., Any]:
        """The library's function with a name of the standard, which may be that of an extension, such as `fft.fft`."""
        xp = self.xp
        return attrgetter(name if "." in name or hasattr(xp, name) else f"linalg.{name}")(xp)

    def compile_function(
        self, name: str, function: Callable[..., Any], count: int, *, standard: bool
    ) -> Callable[..., Any]:
        """A function of arrays without other arguments, compiled if that is faster.

        Args:
            name: of the function.
            function: the function.
            count: how many arrays it takes.
            standard: whether it is in the standard; other functions may call functions of the user.
        """
        return function

    def with_key(self, raw: Raw, weak: bool = False) -> tuple[Raw, Key]:
        """An array in the class that prepared functions take, and its key.

        Args:
            raw: the array.
            weak: whether it is weak, for libraries with arrays that have no weak flag.

        Raises:
            OperandError: for an array that is not of numbers.
        """
        plain = self.plain(raw)
        return plain, self.key_of(plain, weak)

    def key_of(self, raw: Raw, weak: bool = False) -> Key:
        """The key of an array in the class that prepared functions take, with the arguments of `with_key`."""
        parts = self._key_parts(raw, weak)
        key = self._known.get(parts)
        if key is None:
            key = self._known[parts] = array_key(self, self.dtype_of(raw), *parts[1:])
        return key

    def _key_parts(self, raw: Any, weak: bool) -> tuple[Any, bool, bool, Hashable]:
        """What a key depends on: the dtype as the library has it, whether it is weak and 0-d, and the device."""
        return raw.dtype, weak, raw.ndim == 0, self.device_of(raw)

    def dtype_of(self, raw: Raw) -> DType:
        """The dtype of one of its arrays.

        Raises:
            OperandError: for a dtype without a row in the table of formats.
        """
        try:
            return as_format(raw.dtype).dtype
        except UnknownDtypeError:
            raise OperandError(f"the operand's dtype must be numeric, got {raw.dtype}") from None

    def plain(self, raw: Raw) -> Raw:
        """The array in the class that prepared functions take."""
        return raw

    @abstractmethod
    def prepare(self, plan: CallPlan) -> Callable[..., Raw]:
        """A function that casts and computes. It must be fast.

        Args:
            plan: the plan; operands that are not from this library are NumPy arrays or Python numbers.

        Raises:
            RuntimeDtypeError: if the library cannot represent a dtype of the plan.
        """

    def clarify_error(self, plan: CallPlan, error: Exception, operands: Sequence[Any]) -> Exception:
        """A clearer error for one that a prepared function raised; the same error if there is none.

        Args:
            plan: the plan that the function was prepared for.
            error: the error.
            operands: what the function was called with.
        """
        return error

    def converter(self, plan: CallPlan, position: int) -> Callable[[Any], Any] | None:
        """A function that converts an operand of a plan to an array of this library; None if nothing is to be done."""
        raise NotImplementedError

    def device_of_plan(self, plan: CallPlan) -> Any:
        """The device of a plan's result; None for libraries that do not prepare operations per device."""
        return None

    def key_of_result(self, plan: CallPlan) -> Key:
        """The key of the result of an elementwise plan, which has the broadcast shape of the operands."""
        zero_d = all(key.zero_d for key in plan.keys)
        return array_key(self, plan.result.dtype, plan.result.weak, zero_d, self.device_of_plan(plan))

    @abstractmethod
    def astype(self, raw: Raw, dtype: DType, weak: bool = False, *, copy: bool = True) -> Raw:
        """An array in another dtype."""

    @abstractmethod
    def asarray(
        self, data: ArrayLike, dtype: DType | None = None, device: object = None, copy: bool | None = None
    ) -> Raw:
        """A strong array made from an array of any library, or from anything that NumPy converts to an array."""

    @abstractmethod
    def numpy(self, raw: Raw) -> np.ndarray[Any, Any]:
        """One of its arrays as an array of NumPy."""

    @abstractmethod
    def native_dtype(self, dtype: DType) -> Any:
        """The library's own object for a dtype."""

    def item(self, raw: Raw, index: object) -> Raw:
        """Elements of an array."""
        array: Any = raw
        return array[index]

    def flags(self) -> Hashable:
        """The flags of the library that determine its dtypes; None if it has none."""
        return None

    def under(self, flags: Hashable) -> AbstractContextManager[Any]:
        """A block in which the library has these flags."""
        return nullcontext()

    def try_out(self, function: Callable[..., Raw], samples: Sequence[Any], dtypes: Sequence[DType]) -> bool:
        """Whether the library computes a function of some arrays.

        Args:
            function: takes the samples.
            samples: arrays of one element of any library, and Python numbers.
            dtypes: the dtypes of the arrays, of the computation and, last, of the result.

        Raises:
            Exception: any error of the library if it does not.
        """
        return self.dtype_of(function(*samples)) == dtypes[-1]

    def is_traced(self, raw: Raw) -> bool:
        """Whether an array stands for values that are not computed yet."""
        return False

    def device_of(self, raw: Raw) -> Any:
        """The device of an array."""
        array: Any = raw
        return array.device

    def __repr__(self) -> str:
        return f"<backend {self.name}>"
