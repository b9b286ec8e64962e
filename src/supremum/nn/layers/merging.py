"""Layers that merge several inputs: sums, products, maxima and concatenation.

Without inexact inputs, integers and bools keep their dtype, since a policy's format may not hold counts and indices.
With inexact inputs, all inputs get one inexact dtype; results are computed in at least float32 and rounded once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Unpack

import jax
import jax.numpy as jnp

from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format, at_least_float32
from supremum.nn.functional.dtype_promotion import (
    common_dtype,
    promote_and_widen,
    promote_arrays,
    refuse_complex,
    refuse_none,
)
from supremum.nn.functional.shape_checks import as_axes
from supremum.nn.layer import Layer
from supremum.nn.layer_types import LayerOptions


class _Merge(Layer):
    """The common base of merging layers, which take a list or tuple of inputs."""

    def call(self, inputs: Sequence[jax.Array]) -> jax.Array:
        """Merge the inputs, in the compute dtype; integers and bools keep their dtype if no input is inexact."""
        name = type(self).__name__
        if not isinstance(inputs, (list, tuple)):
            raise OperandError(f"{name} needs a list of inputs, got {type(inputs).__name__}; use [x, y]")
        if not inputs:
            raise ArgumentError(f"{name} needs at least one array, got none")
        refuse_none(**{f"array {number}": array for number, array in enumerate(inputs)})
        return self.merge(*inputs)

    _function: ClassVar[Callable[[Any, Any], Any]]
    _takes_bools: ClassVar[bool] = True

    def merge(self, *inputs: jax.Array) -> jax.Array:
        """Apply a function of two arrays to one input after the other, and round once."""
        inputs = self.promote(*inputs)
        self.check_shapes(*inputs)
        target = inputs[0].dtype
        row = as_format(target)
        if row.category == "bool" and not self._takes_bools:
            raise OperandError(f"{type(self).__name__} needs numbers, got bools; use x.astype('int32')")
        wide = at_least_float32(target) if row.is_inexact else target
        return functools.reduce(type(self)._function, [array.astype(wide) for array in inputs]).astype(target)

    def promote(self, *inputs: Any) -> tuple[jax.Array, ...]:
        """Cast inputs to one dtype: the compute dtype if one is inexact, else their result type."""
        inexact = any(as_format(common_dtype(array, inexact=False)).is_inexact for array in inputs)
        return promote_arrays(*inputs, dtype=self.compute_dtype if inexact else None, inexact=False)

    def check_shapes(self, *inputs: jax.Array) -> None:
        """Raise unless the inputs have the same number of axes, each of one length or length 1."""
        same_axes = len({array.ndim for array in inputs}) == 1
        sizes = zip(*(array.shape for array in inputs), strict=False)
        if not same_axes or any(len(set(each) - {1}) > 1 for each in sizes):
            raise ArgumentError(
                f"{type(self).__name__} needs arrays with the same number of axes, each of one length or length 1, got "
                f"{_shapes(inputs)}"
            )


class Add(_Merge):
    """Add inputs value by value, rounded once.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for no inputs, or shapes that do not match; a `ValueError`.
        OperandError: for bools, which cannot be added; a `TypeError`.

    >>> import jax.numpy as jnp
    >>> Add()([jnp.array([1.0]), jnp.array([2.0]), jnp.array([3.0])])
    Array([6.], dtype=float32)
    """

    _function = staticmethod(jnp.add)
    _takes_bools = False


class Subtract(_Merge):
    """Subtract the second of two inputs from the first.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Subtract()([jnp.array([3.0]), jnp.array([2.0])])
    Array([1.], dtype=float32)
    """

    _function = staticmethod(jnp.subtract)
    _takes_bools = False

    def merge(self, *inputs: jax.Array) -> jax.Array:
        """Subtract the inputs."""
        if len(inputs) != 2:
            raise ArgumentError(f"Subtract needs two inputs, got {len(inputs)}; use [x, y]")
        return super().merge(*inputs)


class Multiply(_Merge):
    """Multiply inputs value by value, rounded once; for bools, whether all are true.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Multiply()([jnp.array([2.0]), jnp.array([3.0])])
    Array([6.], dtype=float32)
    """

    _function = staticmethod(jnp.multiply)


class Average(_Merge):
    """Average inputs value by value, rounded once; the mean of integers is in the compute dtype too.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Average()([jnp.array([1]), jnp.array([2])])
    Array([1.5], dtype=float32)
    """

    def merge(self, *inputs: jax.Array) -> jax.Array:
        """Average the inputs."""
        target, wide = promote_and_widen(*inputs, dtype=self.compute_dtype)
        self.check_shapes(*wide)
        return (functools.reduce(jnp.add, wide) / len(wide)).astype(target)


class Maximum(_Merge):
    """Take the maximum of inputs value by value; for bools, whether one is true.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Maximum()([jnp.array([1.0, 4.0]), jnp.array([3.0, 2.0])])
    Array([3., 4.], dtype=float32)
    """

    _function = staticmethod(jnp.maximum)

    def merge(self, *inputs: jax.Array) -> jax.Array:
        """Take the maximum of the inputs."""
        for x in inputs:
            refuse_complex("Maximum", x=x)
        return super().merge(*inputs)


class Concatenate(_Merge):
    """Join inputs along an axis.

    Args:
        axis: the axis.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Concatenate()([jnp.ones((2, 3)), jnp.ones((2, 1))]).shape
    (2, 4)
    """

    def __init__(self, axis: int = -1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis = axis

    def merge(self, *inputs: jax.Array) -> jax.Array:
        """Join the inputs."""
        inputs = self.promote(*inputs)
        (place,) = as_axes("axis", (self.axis,), inputs[0].ndim)
        rest = {(*array.shape[:place], *array.shape[place + 1 :]) for array in inputs}
        if len(rest) > 1 or len({array.ndim for array in inputs}) > 1:
            raise ArgumentError(
                f"Concatenate needs arrays of the same shape except for axis {self.axis}, got {_shapes(inputs)}"
            )
        return jnp.concatenate(inputs, place)


def _shapes(arrays: Any) -> str:
    return " and ".join(str(array.shape) for array in arrays)
