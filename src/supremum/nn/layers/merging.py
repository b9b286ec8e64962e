"""Layers that merge several inputs."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Unpack

import jax

from supremum.errors import ArgumentError, OperandError
from supremum.nn import functional
from supremum.nn.layer import Layer
from supremum.nn.layer_types import LayerOptions


class _Merge(Layer):
    """The common base of merging layers, which take a list or tuple of inputs."""

    def call(self, inputs: Any) -> jax.Array:
        """Merge the inputs, in the compute dtype; integers and bools keep their dtype if no input is inexact."""
        if not isinstance(inputs, (list, tuple)):
            raise OperandError(f"{type(self).__name__} needs a list of inputs, got {type(inputs).__name__}; use [x, y]")
        return self.merge(*inputs)

    @abstractmethod
    def merge(self, *inputs: Any) -> jax.Array:
        """Merge the inputs."""


class Add(_Merge):
    """Add inputs value by value, rounded once.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Add()([jnp.array([1.0]), jnp.array([2.0]), jnp.array([3.0])])
    Array([6.], dtype=float32)
    """

    def merge(self, *inputs: Any) -> jax.Array:
        """Add the inputs."""
        return functional.add(*inputs, dtype=self.compute_dtype)


class Subtract(_Merge):
    """Subtract the second of two inputs from the first.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Subtract()([jnp.array([3.0]), jnp.array([2.0])])
    Array([1.], dtype=float32)
    """

    def merge(self, *inputs: Any) -> jax.Array:
        """Subtract the inputs."""
        if len(inputs) != 2:
            raise ArgumentError(f"Subtract needs two inputs, got {len(inputs)}; use [x, y]")
        return functional.subtract(*inputs, dtype=self.compute_dtype)


class Multiply(_Merge):
    """Multiply inputs value by value, rounded once.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Multiply()([jnp.array([2.0]), jnp.array([3.0])])
    Array([6.], dtype=float32)
    """

    def merge(self, *inputs: Any) -> jax.Array:
        """Multiply the inputs."""
        return functional.multiply(*inputs, dtype=self.compute_dtype)


class Average(_Merge):
    """Average inputs value by value, rounded once; the mean of integers is in the compute dtype too.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Average()([jnp.array([1]), jnp.array([2])])
    Array([1.5], dtype=float32)
    """

    def merge(self, *inputs: Any) -> jax.Array:
        """Average the inputs."""
        return functional.average(*inputs, dtype=self.compute_dtype)


class Maximum(_Merge):
    """Take the maximum of inputs value by value.

    Args:
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    >>> import jax.numpy as jnp
    >>> Maximum()([jnp.array([1.0, 4.0]), jnp.array([3.0, 2.0])])
    Array([3., 4.], dtype=float32)
    """

    def merge(self, *inputs: Any) -> jax.Array:
        """Take the maximum of the inputs."""
        return functional.maximum(*inputs, dtype=self.compute_dtype)


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

    def merge(self, *inputs: Any) -> jax.Array:
        """Join the inputs."""
        return functional.concatenate(*inputs, axis=self.axis, dtype=self.compute_dtype)
