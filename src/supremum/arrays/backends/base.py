"""`Backend`, the interface to a library; `Key`, what a prepared operation depends on; `Plan`, what it does."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from supremum.decisions import Decision, ResultType
from supremum.errors import OperandError, UnknownDtypeError
from supremum.formats import DType, as_format
from supremum.number_conversion import Steps
from supremum.operands import Operand
from supremum.operations import Operation

Raw: TypeAlias = Any
"""An array of a library, not wrapped."""


class Key:
    """Everything about an operand that a prepared operation depends on. Equal keys are one object.

    Args:
        backend: the library it is from; None for a Python number.
        operand: how promotion sees it; of an array with dimensions, as one with one.
        device: where it is, for libraries whose operations are prepared per device.
    """

    __slots__ = ("backend", "device", "dtype", "operand", "weak", "zero_d")

    def __init__(self, backend: Backend | None, operand: Operand, device: Hashable) -> None:
        self.backend = backend
        self.operand = operand
        self.device = device
        self.dtype = operand.dtype
        self.weak = operand.weak
        self.zero_d = operand.ndim == 0

    def __repr__(self) -> str:
        return f"Key({self.backend.name if self.backend else 'Python'}, {self.operand}, {self.device})"


_KEYS: dict[Hashable, Key] = {}


def array_key(backend: Backend, dtype: DType, weak: bool, zero_d: bool, device: Hashable = None) -> Key:
    """The key of an array."""
    what = (backend, dtype, weak, zero_d, device)
    key = _KEYS.get(what)
    if key is None:
        row = as_format(dtype)
        # Only bool has no weak form.
        operand = Operand(row.category, row.dtype, weak and row.category != "bool", 0 if zero_d else 1)
        # Of two threads that get here together both use the one that was first.
        key = _KEYS.setdefault(what, Key(backend, operand, device))
    return key


@dataclass(frozen=True, slots=True)
class Plan:
    """What an operation does, once it is decided.

    Args:
        operation: its row.
        keys: its operands.
        compute: the dtype each of them is cast to first.
        result: what the result is then cast to, and whether it is weak.
        rules: the name of the rule set that decided it.
        function: what is computed instead of the library's function of the operation's name, given the backend.
        options: what `function` is given besides the operands.
        number_steps: for each operand that is a Python number, the formats it is converted to; as in `Verdict`.
        decision: what was decided, for errors: it knows what to cast where the library has no function.
    """

    operation: Operation
    keys: tuple[Key, ...]
    compute: tuple[DType, ...]
    result: ResultType
    rules: str
    function: Callable[..., Raw] | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    number_steps: tuple[Steps, ...] = ()
    decision: Decision | None = None

    @property
    def casts(self) -> tuple[bool, ...]:
        """Which operands are not in the dtype they are computed in."""
        return tuple(key.dtype != target for key, target in zip(self.keys, self.compute, strict=True))


class Backend(ABC):
    """A library whose arrays are wrapped.

    Attributes:
        name: what users call it.
        namespace: the module that follows the Python array API standard for it.
        has_weak_arrays: whether its arrays say themselves whether they are weak.
        mutable: whether its arrays can be written to.
        passed_through: errors of its own that are not replaced by a `ComputationError`.
        in_jax: whether JAX's runtime holds its arrays, and so JAX's flags say whether they can have 64 bits.
        compiles: whether it is given casts and function as one program.
        rules: the name of the rule set that its own functions follow; empty where there is none.
    """

    name: str
    namespace: str
    has_weak_arrays: bool = False
    mutable: bool = True
    in_jax: bool = False
    compiles: bool = False
    rules: str = ""
    passed_through: tuple[type[Exception], ...] = ()

    def check_computes(self, name: str, dtypes: Iterable[DType]) -> None:  # noqa: B027 (most compute in all they hold)
        """Raise for formats that it holds, but does not compute in.

        Args:
            name: of the function.
            dtypes: of the arrays that it is given.

        Raises:
            RuntimeDtypeError: if there is such a format among the dtypes.
        """

    @cached_property
    def xp(self) -> Any:
        """Its namespace by the Python array API standard."""
        return importlib.import_module(self.namespace)

    @abstractmethod
    def key_of(self, raw: Raw, weak: bool = False) -> Key:
        """The key of one of its arrays.

        Raises:
            OperandError: for a dtype that no rule promotes.
        """

    def dtype_of(self, raw: Raw) -> DType:
        """The dtype of one of its arrays.

        Raises:
            OperandError: for a dtype without a row in the table of formats.
        """
        try:
            return as_format(raw.dtype).dtype
        except UnknownDtypeError as error:
            raise OperandError(
                f"an operand is of dtype {raw.dtype}, which no rule promotes: give a numeric array"
            ) from error

    def plain(self, raw: Raw) -> Raw:
        """An array of the class that operations are prepared for."""
        return raw

    @abstractmethod
    def prepare(self, plan: Plan) -> Callable[..., Raw]:
        """A function that casts and computes: fast, as it is called again and again.

        Args:
            plan: what to do; operands that are not from this library are NumPy arrays or Python numbers.

        Raises:
            RuntimeDtypeError: if the library cannot represent a dtype of the plan.
        """

    def key_of_result(self, plan: Plan) -> Key:
        """The key of what is prepared for a plan without a function of its own, which keeps the broadcast shape."""
        zero_d = all(key.zero_d for key in plan.keys)
        return array_key(self, plan.result.dtype, plan.result.weak, zero_d)

    @abstractmethod
    def astype(self, raw: Raw, dtype: DType, weak: bool = False, *, copy: bool = True) -> Raw:
        """An array in another dtype."""

    @abstractmethod
    def asarray(self, data: Any, dtype: DType | None = None, device: Any = None, copy: bool | None = None) -> Raw:
        """An array of what NumPy can make one of, or of another library's array; not weak."""

    @abstractmethod
    def numpy(self, raw: Raw) -> np.ndarray[Any, Any]:
        """One of its arrays as NumPy's."""

    @abstractmethod
    def native_dtype(self, dtype: DType) -> Any:
        """What the library itself calls a dtype."""

    def flags(self) -> Hashable:
        """The state of the library that decides which dtypes it has; None where there is none."""
        return None

    def under(self, flags: Hashable) -> AbstractContextManager[Any]:
        """A block in which the library has the flags that it had then."""
        return nullcontext()

    def try_out(self, function: Callable[..., Raw], samples: Sequence[Any], dtypes: Sequence[DType]) -> bool:
        """Whether the library computes a function of some arrays.

        Args:
            function: of as many arrays or Python numbers as there are samples.
            samples: arrays of one element of any library, and Python numbers.
            dtypes: those of the arrays, and those that it computes in; the last is that of the result.

        Raises:
            Exception: whatever the library raises if it does not.
        """
        return self.dtype_of(function(*samples)) == dtypes[-1]

    def is_traced(self, raw: Raw) -> bool:
        """Whether an array stands for values that are not there yet."""
        return False

    def device_of(self, raw: Raw) -> Any:
        """Where an array is."""
        return raw.device

    def __repr__(self) -> str:
        return f"<backend {self.name}>"
