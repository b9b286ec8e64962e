"""Python's operators for variables, which apply the operators of `Array` to the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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


def _conversion(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def converted(self: Any) -> Any:
        return convert(self.value)

    return converted


def _operators(*names: str) -> Iterator[Callable[..., Any]]:
    return (_operator(f"__{name}__") for name in names)


class VariableOperators:
    """Operators from both sides, comparisons, indexing and conversions; all of them read `value`, which casts."""

    # NumPy's arrays must leave operators to this class. NumPy's functions, which compute on the host, then raise.
    __array_ufunc__ = None

    @property
    def value(self) -> jax.Array:
        """The value as computations see it."""
        raise NotImplementedError

    __pos__, __neg__, __abs__, __invert__ = _operators("pos", "neg", "abs", "invert")
    __add__, __radd__, __sub__, __rsub__ = _operators("add", "radd", "sub", "rsub")
    __mul__, __rmul__, __truediv__, __rtruediv__ = _operators("mul", "rmul", "truediv", "rtruediv")
    __floordiv__, __rfloordiv__, __mod__, __rmod__ = _operators("floordiv", "rfloordiv", "mod", "rmod")
    __divmod__, __rdivmod__, __pow__, __rpow__ = _operators("divmod", "rdivmod", "pow", "rpow")
    __matmul__, __rmatmul__ = _operators("matmul", "rmatmul")
    __and__, __rand__, __or__, __ror__, __xor__, __rxor__ = _operators("and", "rand", "or", "ror", "xor", "rxor")
    __lshift__, __rlshift__, __rshift__, __rrshift__ = _operators("lshift", "rlshift", "rshift", "rrshift")
    __lt__, __le__, __gt__, __ge__ = _operators("lt", "le", "gt", "ge")
    __eq__, __ne__ = _operators("eq", "ne")  # pyright: ignore[reportAssignmentType] (elementwise)
    # Layers and optimizers use variables as keys, by identity and not by value.
    __hash__ = object.__hash__

    __len__, __iter__ = _conversion(len), _conversion(iter)
    __bool__, __int__, __float__, __complex__ = map(_conversion, (bool, int, float, complex))

    def __getitem__(self, index: Any) -> jax.Array:
        return self.value[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.value, dtype) if copy is None else np.array(self.value, dtype, copy=copy)
