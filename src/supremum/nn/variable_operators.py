"""Variables as values of JAX: Python's operators, which are those of the value, and JAX's own functions."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import numpy as np

from supremum.errors import ArgumentError, shown
from supremum.jax_compat import register_operand


def _read(operand: Any) -> Any:
    return operand.value if isinstance(operand, VariableOperators) else operand


def _flatten(variable: VariableOperators) -> tuple[tuple[tuple[Any, jax.Array]], None]:
    return ((jax.tree_util.GetAttrKey("value"), variable.value),), None


def _unflatten(_: None, children: Iterable[Any]) -> Any:
    (value,) = children
    return value


def _unary(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda self: function(self.value)


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(self.value, _read(other))


def _reflect(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(_read(other), self.value)


if TYPE_CHECKING:
    from supremum.arrays import OperatorTypes

    _Base = OperatorTypes[jax.Array]
else:
    _Base = object


class VariableOperators(_Base):
    """Operators from both sides, comparisons, indexing and conversions; all of them read `value`, which casts.

    Functions of `jax.numpy` and `jax.nn` take these objects as they take arrays. For that JAX needs two things: the
    method `__jax_array__`, and a registration as a pytree, so that a jitted function gets the value as its argument.
    A tree with a variable in it therefore has the variable's value as a leaf, and a tree that JAX rebuilds has an
    array in its place. Results have the dtypes of JAX's promotion.
    """

    name: str

    # NumPy's arrays must leave operators to this class. NumPy's functions, which compute on the host, then raise.
    __array_ufunc__ = None

    @property
    def value(self) -> jax.Array:
        """The value as computations see it."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        jax.tree_util.register_pytree_with_keys(cls, _flatten, _unflatten)

    @property
    def __jax_array__(self) -> Callable[[], jax.Array]:
        """The method with which JAX gets the value. `jax.typeof` reads it only to refuse the object."""
        if _frame_of_jax().f_code is jax.typeof.__code__:
            _refuse(self)
        return lambda: self.value

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


def _add_operators() -> None:
    for name in ("pos", "neg", "abs", "invert"):
        setattr(VariableOperators, f"__{name}__", _unary(getattr(operator, name)))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(VariableOperators, f"__{name}__", _binary(getattr(operator, name)))
    both = (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
    )  # fmt: skip
    functions = {name: getattr(operator, f"__{name}__") for name in both} | {"divmod": divmod}
    for name, function in functions.items():
        setattr(VariableOperators, f"__{name}__", _binary(function))
        setattr(VariableOperators, f"__r{name}__", _reflect(function))


_add_operators()


def _refuse(variable: VariableOperators) -> NoReturn:
    """Raise for a variable in a function of `jax.lax`, which takes arrays only.

    JAX's own error says to register the object as a pytree, and names neither the variable nor the function.
    """
    frame = _frame_of_jax()
    while frame.f_back is not None and _is_jax(frame.f_back):
        frame = frame.f_back
    given = f"variable {shown(variable.name)}; use {variable.name}.value"
    raise ArgumentError(f"{frame.f_code.co_name}() takes arrays, got {given}, or a function of jax.numpy")


def _frame_of_jax() -> FrameType:
    """The innermost frame of JAX."""
    frame = inspect.currentframe()
    assert frame is not None  # CPython has frames
    while frame.f_back is not None and not _is_jax(frame):
        frame = frame.f_back
    return frame


def _is_jax(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("jax.")


register_operand(VariableOperators, _refuse)
