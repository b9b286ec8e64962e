"""Variables as values of JAX: Python's operators, which are those of the value, and JAX's own functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from supremum.errors import ArgumentError, shown


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

    def __jax_array__(self) -> jax.Array:
        return self.value

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


def explained(error: Exception) -> Exception:
    """Explain JAX's error about a variable in a function of `jax.lax`; return any other error as it is.

    Functions of `jax.lax` take arrays only. JAX's message says to convert the object with `jax.numpy.array`, or to
    register it as a pytree, and neither names it nor the function.

    Args:
        error: an error with a traceback.

    >>> class Doubled(VariableOperators):
    ...     name, value = "scale", jax.numpy.ones(2)
    >>> try:
    ...     jax.lax.exp(Doubled())
    ... except ValueError as error:
    ...     print(explained(error))
    exp() takes arrays, got variable 'scale'; use scale.value, or a function of jax.numpy
    """
    if not isinstance(error, ValueError) or "__jax_array__() during abstractification" not in str(error):
        return error
    function, name = "a function of jax.lax", ""
    place, is_inside = error.__traceback__, False
    while place is not None:
        frame = place.tb_frame
        if not str(frame.f_globals.get("__name__", "")).startswith("jax."):
            is_inside = False
        elif not is_inside:
            function, is_inside = f"{frame.f_code.co_name}()", True
            variables = [each for each in frame.f_locals.values() if isinstance(each, VariableOperators)]
            name = variables[0].name if variables else name
        place = place.tb_next
    description = f"variable {shown(name)}; use {name}.value" if name else "a variable; use variable.value"
    return ArgumentError(f"{function} takes arrays, got {description}, or a function of jax.numpy")
