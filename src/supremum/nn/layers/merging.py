"""Layers of several inputs."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Unpack

import jax

from supremum.errors import ArgumentError, OperandError
from supremum.nn.functional import add, average, concatenate, maximum, multiply, subtract
from supremum.nn.layer import Layer, LayerOptions


class _Merge(Layer):
    """What the layers of several inputs have in common: they take a list or tuple of them."""

    def call(self, inputs: Any) -> jax.Array:
        """The inputs in one, in the compute dtype; integers and bools alone stay what they are."""
        if not isinstance(inputs, (list, tuple)):
            raise OperandError(
                f"{type(self).__name__} takes a list of inputs, not one of type {type(inputs).__name__}: give [x, y]"
            )
        return self.merge(*inputs)

    @abstractmethod
    def merge(self, *inputs: Any) -> jax.Array:
        """The inputs in one."""


class Add(_Merge):
    """The sum of inputs, value by value, rounded once.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def merge(self, *inputs: Any) -> jax.Array:
        """The sum."""
        return add(*inputs, dtype=self.compute_dtype)


class Subtract(_Merge):
    """The first of two inputs less the second.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def merge(self, *inputs: Any) -> jax.Array:
        """The difference."""
        if len(inputs) != 2:
            raise ArgumentError(f"Subtract takes two inputs, not {len(inputs)}: give [x, y]")
        return subtract(*inputs, dtype=self.compute_dtype)


class Multiply(_Merge):
    """The product of inputs, value by value, rounded once.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def merge(self, *inputs: Any) -> jax.Array:
        """The product."""
        return multiply(*inputs, dtype=self.compute_dtype)


class Average(_Merge):
    """The mean of inputs, value by value, rounded once; of integers too it is in the compute dtype.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def merge(self, *inputs: Any) -> jax.Array:
        """The mean."""
        return average(*inputs, dtype=self.compute_dtype)


class Maximum(_Merge):
    """The largest of the values of inputs.

    Args:
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def merge(self, *inputs: Any) -> jax.Array:
        """The maxima."""
        return maximum(*inputs, dtype=self.compute_dtype)


class Concatenate(_Merge):
    """Inputs one after the other along an axis.

    Args:
        axis: the axis.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def __init__(self, axis: int = -1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis = axis

    def merge(self, *inputs: Any) -> jax.Array:
        """The inputs along the axis."""
        return concatenate(*inputs, axis=self.axis, dtype=self.compute_dtype)
