"""Python's operators for variables, which apply the operators of `Array` to the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from supremum.arrays import Array, wrap


def _read(operand: Any) -> Any:
    return operand.value if isinstance(operand, VariableOperators) else operand


def _operator(name: str) -> Callable[..., Any]:
    """An operator on the value, under the rules in force; returns a JAX array, or an `Array` if it meets one."""
    method = getattr(Array, name)

    def operator(self: Any, *others: Any) -> Any:
        found = method(wrap(self.value), *map(_read, others))
        if any(isinstance(other, Array) for other in others):
            return found
        if isinstance(found, tuple):
            return tuple(part.unwrap() for part in found)
        return found.unwrap() if isinstance(found, Array) else found

    operator.__name__ = operator.__qualname__ = name
    return operator


if TYPE_CHECKING:
    from supremum.arrays import OperatorTypes

    _Base = OperatorTypes[jax.Array]
else:
    _Base = object


class VariableOperators(_Base):
    """Operators from both sides, comparisons, indexing and conversions; all of them read `value`, which casts."""

    # NumPy's arrays must leave operators to this class. NumPy's functions, which compute on the host, then raise.
    __array_ufunc__ = None

    @property
    def value(self) -> jax.Array:
        """The value as computations see it."""
        raise NotImplementedError

    # Layers and optimizers use variables as keys, by identity and not by value.
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[jax.Array]:
        return iter(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __getitem__(self, index: Any) -> jax.Array:
        return self.value[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.value, dtype) if copy is None else np.array(self.value, dtype, copy=copy)


for _name in (
    "pos", "neg", "abs", "invert", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv",
    "rfloordiv", "mod", "rmod", "divmod", "rdivmod", "pow", "rpow", "matmul", "rmatmul", "and", "rand", "or", "ror",
    "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift", "lt", "le", "gt", "ge", "eq", "ne",
):  # fmt: skip
    setattr(VariableOperators, f"__{_name}__", _operator(f"__{_name}__"))
