"""The inputs of functional models, `nn.Input`, and Python's operators on them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax

from supremum.argument_checks import iterable
from supremum.arrays import Array
from supremum.errors import ArgumentError, shown
from supremum.formats import as_format
from supremum.mixed_precision import floatx
from supremum.nn.layer import Layer
from supremum.nn.symbolic import SymbolicValue


class OperatorLayer(Layer):
    """Apply an operator of Python, under the rules in force when the model runs, and without other casts.

    Args:
        function: a function of the module `operator`.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(dtype="infer", autocast=False, name=function.__name__)
        self.function = function

    def call(self, *operands: Any) -> Any:
        """Apply the operator, and return an array of JAX."""
        given = [Array(operand) if isinstance(operand, jax.Array) else operand for operand in operands]
        found = self.function(*given)
        return found.unwrap() if isinstance(found, Array) else found


def _operator(function: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        return OperatorLayer(function)(*((*others, self) if reflected else (self, *others)))

    return method


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return _operator(function, reflected=True)


class SymbolicTensor(SymbolicValue):
    """An array with a known shape and dtype but no values, as an input or an output of a layer in a functional model.

    Layers take it, and so do Python's arithmetic operators and indexing.

    Args:
        shape: its shape, with None for axes of any length.
        dtype: its dtype.
        node: the call it comes from; None for an input.
        name: the name of an input.
    """

    __slots__ = ()
    # NumPy's arrays must leave operators to this class.
    __array_ufunc__ = None

    __neg__, __getitem__ = _operator(operator.neg), _operator(operator.getitem)
    __add__, __radd__ = _operator(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _operator(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _operator(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _operator(operator.truediv), _reflected(operator.truediv)
    __pow__, __rpow__ = _operator(operator.pow), _reflected(operator.pow)
    __matmul__, __rmatmul__ = _operator(operator.matmul), _reflected(operator.matmul)


def Input(  # noqa: N802 (the name that users of Keras know)
    shape: Any, dtype: Any = None, *, batch_size: int | None = None, name: str = ""
) -> SymbolicTensor:
    """An input of a functional model.

    Args:
        shape: its shape without the batch axis, with None for axes of any length.
        dtype: its dtype; None for `floatx()`.
        batch_size: the length of the batch axis; None for any length.
        name: its name in errors and the summary.

    >>> Input((28, 28, 1))
    SymbolicTensor(shape=(None, 28, 28, 1), dtype=float32)
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(iterable("shape", shape, "lengths"))
    for size in (batch_size, *sizes):
        if not (size is None or (isinstance(size, int) and size >= 0)):
            raise ArgumentError(
                f"the shape of an Input must consist of lengths, or None for any length, got "
                f"{shown(size)} in {shown(shape)}"
            )
    return SymbolicTensor((batch_size, *sizes), as_format(floatx() if dtype is None else dtype).dtype, name=name)
