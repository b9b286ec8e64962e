"""Constraints on weights, which an optimizer applies after each step; computed in at least float32."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from supremum.argument_checks import real_within
from supremum.errors import ArgumentError
from supremum.mixed_precision import widen
from supremum.nn.functional import as_axes, as_floating
from supremum.nn.named_options import as_option

ConstraintFunction: TypeAlias = Callable[[Any], Any]
"""A function of a weight's value that returns the value to use instead: a `Constraint`, or a function of the user."""
Axis: TypeAlias = int | tuple[int, ...] | None

_EPSILON = 1e-7  # as in Keras


class Constraint(ABC):
    """A function that moves the value of a weight into an allowed set, and rounds to the weight's dtype once.

    >>> class AtMostOne(Constraint):
    ...     def constrain(self, w):
    ...         return jnp.minimum(w, 1)
    >>> AtMostOne()(jnp.asarray([0.5, 2.0], "float16"))
    Array([0.5, 1. ], dtype=float16)
    """

    def __call__(self, w: jax.Array) -> jax.Array:
        """The value that replaces `w`, in the shape and dtype of `w`.

        Args:
            w: a real floating array of any shape.

        Raises:
            OperandError: for anything else; a `TypeError`.
        """
        array = as_floating(type(self).__name__, "w", w)
        return self.constrain(widen(array)).astype(array.dtype)

    @abstractmethod
    def constrain(self, w: jax.Array) -> jax.Array:
        """The value that replaces `w`, an array of at least float32."""


@dataclass(frozen=True)
class NonNeg(Constraint):
    """Replace negative numbers by 0.

    >>> NonNeg()(jnp.asarray([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """

    def constrain(self, w: jax.Array) -> jax.Array:
        """The value that replaces an array of at least float32."""
        return jnp.maximum(w, 0)


@dataclass(frozen=True)
class MinMaxNorm(Constraint):
    """Keep norms between two numbers.

    Args:
        min_value: the smallest norm.
        max_value: the largest norm.
        rate: how much of the way to that range a step goes, from 0 to 1.
        axis: the axes over which a norm is computed; the default, the first axis, is the inputs of a `Dense` kernel.
            None is all axes.

    Raises:
        ArgumentError: for norms below 0 or in the wrong order, or a rate out of its range; a `ValueError`.

    >>> MinMaxNorm(1.0, 2.0)(jnp.asarray([[3.0], [4.0]])).round(3)
    Array([[1.2],
           [1.6]], dtype=float32)
    """

    min_value: float = 0.0
    max_value: float = 1.0
    rate: float = 1.0
    axis: Axis = 0

    def __post_init__(self) -> None:
        real_within("min_value", self.min_value, 0, math.inf, "at least 0")
        real_within("max_value", self.max_value, 0, math.inf, "at least 0")
        if self.max_value < self.min_value:
            raise ArgumentError(f"max_value must be at least min_value={self.min_value}, got {self.max_value}")
        real_within("rate", self.rate, 0, 1)

    def constrain(self, w: jax.Array) -> jax.Array:
        """The value that replaces an array of at least float32."""
        norms = _norms(w, self.axis)
        wanted = self.rate * jnp.clip(norms, self.min_value, self.max_value) + (1 - self.rate) * norms
        return w * (wanted / (_EPSILON + norms))


@dataclass(frozen=True)
class MaxNorm(Constraint):
    """Keep norms at most at a number (Srivastava and others, 2014, "Dropout").

    Args:
        max_value: the largest norm.
        axis: as for `MinMaxNorm`.

    Raises:
        ArgumentError: for a norm below 0; a `ValueError`.

    >>> MaxNorm(1.0)(jnp.asarray([[3.0, 0.0], [4.0, 0.5]])).round(3)
    Array([[0.6, 0. ],
           [0.8, 0.5]], dtype=float32)
    """

    max_value: float = 2.0
    axis: Axis = 0

    def __post_init__(self) -> None:
        real_within("max_value", self.max_value, 0, math.inf, "at least 0")

    def constrain(self, w: jax.Array) -> jax.Array:
        """The value that replaces an array of at least float32."""
        norms = _norms(w, self.axis)
        return w * (jnp.minimum(norms, self.max_value) / (_EPSILON + norms))


@dataclass(frozen=True)
class UnitNorm(Constraint):
    """Make norms 1.

    Args:
        axis: as for `MinMaxNorm`.

    >>> UnitNorm()(jnp.asarray([[3.0], [4.0]])).round(3)
    Array([[0.6],
           [0.8]], dtype=float32)
    """

    axis: Axis = 0

    def constrain(self, w: jax.Array) -> jax.Array:
        """The value that replaces an array of at least float32."""
        return w / (_EPSILON + _norms(w, self.axis))


def _norms(w: jax.Array, axis: Axis) -> jax.Array:
    axes = None if axis is None else as_axes("axis", axis, w.ndim)
    return jnp.sqrt(jnp.sum(jnp.square(w), axes, keepdims=True))


_NAMED: dict[str, Constraint] = {
    "max_norm": MaxNorm(),
    "min_max_norm": MinMaxNorm(),
    "non_neg": NonNeg(),
    "unit_norm": UnitNorm(),
}


def as_constraint(constraint: object) -> ConstraintFunction | None:
    """Convert a name to a constraint with Keras' default options; return a function as it is.

    Args:
        constraint: a function of a weight; `"max_norm"`, `"min_max_norm"`, `"non_neg"` or `"unit_norm"`; or None.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.
        OperandError: for anything else; a `TypeError`.

    >>> as_constraint("max_norm")
    MaxNorm(max_value=2.0, axis=0)
    """
    return None if constraint is None else as_option("constraint", constraint, _NAMED, "MaxNorm()")
