"""What a library has to offer for its arrays to be wrapped, and what of an operand a prepared operation depends on."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from supremum.decisions import ResultType
from supremum.errors import OperandError, UnknownDtypeError
from supremum.formats import DType, as_format
from supremum.operands import Operand, Scalar
from supremum.operations import Operation
from supremum.rules import RuleSet

Raw: TypeAlias = Any
"""An array of a library, not wrapped."""


class Key:
    """All of an operand that a prepared operation depends on. There is one object of each, compared by identity.

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
    """

    operation: Operation
    keys: tuple[Key, ...]
    compute: tuple[DType, ...]
    result: ResultType
    rules: str
    function: Callable[..., Raw] | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def casts(self) -> tuple[bool, ...]:
        """Which operands are not in the dtype they are computed in."""
        return tuple(key.dtype != target for key, target in zip(self.keys, self.compute, strict=True))


class Backend(ABC):
    """A library whose arrays are wrapped.

    Attributes:
        name: what users call it.
        namespace: the module that follows the Python array API standard for it.
        own_weakness: whether its arrays have weakness themselves, so that no flag of ours is needed.
        mutable: whether its arrays can be written to.
    """

    name: str
    namespace: str
    own_weakness: bool = False
    mutable: bool = True

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
            OperandError: for a dtype that is no format known here.
        """
        try:
            return as_format(raw.dtype).dtype
        except UnknownDtypeError as error:
            raise OperandError(f"an operand is of dtype {raw.dtype}, which no rule promotes") from error

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

    def is_traced(self, raw: Raw) -> bool:
        """Whether an array stands for values that are not there yet."""
        return False

    def device_of(self, raw: Raw) -> Any:
        """Where an array is."""
        return raw.device

    def __repr__(self) -> str:
        return f"<backend {self.name}>"


def function_of(operation: Operation, module: Any, names: Mapping[str, str]) -> Callable[..., Raw] | None:
    """A library's function for an operation, found by its name or an alias; None where it has none.

    Args:
        operation: the row.
        module: where the functions are.
        names: what the library calls those that have the name of something else there.
    """
    candidates = (names[operation.name],) if operation.name in names else (operation.name, *operation.aliases)
    return next((getattr(module, name) for name in candidates if hasattr(module, name)), None)


def caster_of(dtype: DType, *, silent: bool = True) -> Callable[[Scalar], Any]:
    """A function that makes a NumPy scalar of a Python number.

    Args:
        dtype: of the scalar. An integer that does not hold the number gets it wrapped around: where that is not wanted
            the rules have refused it.
        silent: whether a number that becomes infinite does so without NumPy's warning.
    """
    row = as_format(dtype)
    make = _make_of_ml_dtypes(dtype.type) if row.is_inexact and not row.is_builtin else dtype.type
    low, high, modulus = row.min, row.max, 2**row.bits

    def wrapped(value: Any) -> Any:
        try:
            return make(value)
        except OverflowError:
            return np.asarray(value % modulus, np.uint64).astype(dtype)[()]

    def quiet(value: Any) -> Any:
        with np.errstate(over="ignore"):
            return make(value)

    def ranged(value: Any) -> Any:
        return make(value) if low <= value <= high else quiet(value)

    if row.category == "integer":
        return wrapped
    if not silent or not row.is_inexact:
        return make
    return quiet if row.category == "complex" else ranged


def _make_of_ml_dtypes(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same, also of an int of more than 64 bits, which ml_dtypes takes for no number."""
    return lambda value: make(float(value) if value.__class__ is int else value)


def composed(
    function: Callable[..., Raw], converters: Sequence[Callable[[Any], Any] | None], finish: Callable[[Raw], Raw] | None
) -> Callable[..., Raw]:
    """A function of converted operands, its result finished; with nothing to do, the function itself.

    It is written out for one and two operands, as most operations have: a loop over them costs as much as an addition.
    """
    if finish is not None:
        inner = composed(function, converters, None)
        return lambda *operands: finish(inner(*operands))
    match converters:
        case [None] | [None, None]:
            return function
        case [convert] if convert is not None:
            return lambda a: function(convert(a))
        case [None, convert] if convert is not None:
            return lambda a, b: function(a, convert(b))
        case [convert, None] if convert is not None:
            return lambda a, b: function(convert(a), b)
        case [first, second] if first is not None and second is not None:
            return lambda a, b: function(first(a), second(b))
        case _:
            raise AssertionError("operations have one operand or two")


def promotes_alike(plan: Plan, rules: RuleSet) -> bool:
    """Whether a library, given the operands as they are, computes and returns what is planned.

    Args:
        plan: what is planned.
        rules: the rules of the library.
    """
    if plan.function is not None or len({key.backend for key in plan.keys} - {None}) > 1:
        return False
    operands = tuple(replace(key.operand, weak=key.backend is None and key.operand.weak) for key in plan.keys)
    verdict = rules.decide(plan.operation, operands).verdict
    return verdict.result is not None and (verdict.result.dtype, verdict.compute) == (plan.result.dtype, plan.compute)


def numbers_in_range(plan: Plan, make: Callable[[Any], Any]) -> list[Callable[[Any], Any] | None]:
    """For a library that promotes alike, what makes Python ints fit an integer dtype; nothing for other operands.

    Args:
        plan: what is planned.
        make: what the library takes, of a NumPy scalar.
    """
    converters: list[Callable[[Any], Any] | None] = []
    for key, dtype in zip(plan.keys, plan.compute, strict=True):
        is_integer = key.backend is None and key.operand.category == "integer" and not as_format(dtype).is_inexact
        cast = caster_of(dtype)
        converters.append((lambda value, cast=cast: make(cast(value))) if is_integer else None)
    return converters


_KNOWN_INT = {"pow": 1}


def known_int(plan: Plan) -> int | None:
    """Which operand is a Python int that takes no dtype: a power to it is a product of the base with itself."""
    position = _KNOWN_INT.get(plan.operation.name)
    if position is None or plan.keys[position].backend is not None:
        return None
    return position if plan.keys[position].operand.category == "integer" else None


def multiplied_out(prepared: Callable[..., Raw], backend: Backend, plan: Plan) -> Callable[..., Raw]:
    """A power of integers whose exponent is not wrapped around where the dtype of the base does not hold it.

    Args:
        prepared: the library's power, for exponents that it holds.
        backend: the library.
        plan: what is planned; others than such powers are returned as they are prepared.
    """
    position, dtype = known_int(plan), plan.compute[0]
    if position is None or as_format(dtype).is_inexact:
        return prepared
    highest, xp = as_format(plan.compute[position]).max, backend.xp

    def power(base: Raw, exponent: int) -> Raw:
        if exponent <= highest:
            return prepared(base, exponent)
        # Squares wrap around as products do; those of 0-d arrays would be NumPy's scalars, which warn of it.
        square = xp.reshape(backend.astype(base, dtype), (-1,))
        result = xp.ones_like(square)
        while exponent:
            if exponent & 1:
                result = result * square
            square = square * square
            exponent >>= 1
        return xp.reshape(result, tuple(base.shape))

    return power
