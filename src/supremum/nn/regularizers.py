"""Penalties on large weights and outputs, computed in at least float32.

Keras RFC 293, mixed precision, "Loss dtype": regularizing weights in float16 makes models worse.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from supremum.errors import ArgumentError, shown
from supremum.mixed_precision import widen
from supremum.nn.named_options import as_option

RegularizerFunction: TypeAlias = Callable[[Any], Any]
"""A function of an array that returns a scalar: a `Regularizer`, or a function of the user."""


class Regularizer(ABC):
    """A penalty on an array, as a scalar of at least float32.

    >>> class Largest(Regularizer):
    ...     def penalty(self, x):
    ...         return 0.1 * jnp.max(jnp.abs(x))
    >>> Largest()(jnp.asarray([10.0, -20.0], "float16"))
    Array(2., dtype=float32)
    """

    def __call__(self, x: Any) -> jax.Array:
        """The penalty.

        Args:
            x: an array of any shape, floating or complex.

        Returns:
            A real scalar of at least float32.
        """
        return self.penalty(widen(x))

    @abstractmethod
    def penalty(self, x: Any) -> jax.Array:
        """The penalty on an array of at least float32."""

    def __repr__(self) -> str:
        factors = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__}({factors})"


class L1(Regularizer):
    """`l1 * sum(|x|)`.

    Args:
        l1: the factor, 0 or more; the default is that of Keras.

    Raises:
        ArgumentError: for a negative factor; a `ValueError`.

    >>> L1(0.5)(jnp.asarray([1.0, -2.0], "float16"))
    Array(1.5, dtype=float32)
    """

    def __init__(self, l1: float = 0.01) -> None:
        self.l1: float = _factor("l1", l1)

    def penalty(self, x: Any) -> jax.Array:
        """The penalty on an array of at least float32."""
        return self.l1 * jnp.sum(jnp.abs(x))


class L2(Regularizer):
    """`l2 * sum(x ** 2)`.

    Args:
        l2: the factor, 0 or more; the default is that of Keras.

    Raises:
        ArgumentError: for a negative factor; a `ValueError`.

    >>> L2(0.5)(jnp.asarray([300.0], "float16"))  # the square is beyond float16
    Array(45000., dtype=float32)
    """

    def __init__(self, l2: float = 0.01) -> None:
        self.l2: float = _factor("l2", l2)

    def penalty(self, x: Any) -> jax.Array:
        """The penalty on an array of at least float32."""
        return self.l2 * _sum_of_squares(x)


class L1L2(Regularizer):
    """`l1 * sum(|x|) + l2 * sum(x ** 2)`.

    Args:
        l1: the factor of the absolute values, 0 or more.
        l2: the factor of the squares, 0 or more.

    Raises:
        ArgumentError: for a negative factor; a `ValueError`.

    >>> L1L2(0.5, 0.25)(jnp.asarray([2.0, -2.0], "float16"))
    Array(4., dtype=float32)
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1: float = _factor("l1", l1)
        self.l2: float = _factor("l2", l2)

    def penalty(self, x: Any) -> jax.Array:
        """The penalty on an array of at least float32."""
        return self.l1 * jnp.sum(jnp.abs(x)) + self.l2 * _sum_of_squares(x)


def _sum_of_squares(x: Any) -> jax.Array:
    # For complex numbers this avoids the root in abs(x), which has no gradient at 0.
    return jnp.sum(jnp.real(x * jnp.conj(x)))


def _factor(name: str, value: float) -> float:
    if not (isinstance(value, (int, float)) and math.isfinite(value) and value >= 0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"{name} must be a number of at least 0, got {shown(value)}; use {name}=0.01")
    return float(value)


_NAMED: dict[str, Callable[[], Regularizer]] = {"l1": L1, "l2": L2, "l1_l2": lambda: L1L2(l1=0.01, l2=0.01)}


def as_regularizer(regularizer: Any) -> RegularizerFunction | None:
    """Convert a name to a regularizer with Keras' factor 0.01; return a function as it is.

    Args:
        regularizer: a function of an array that returns a scalar; `"l1"`, `"l2"` or `"l1_l2"`; or None.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.
        OperandError: for anything else; a `TypeError`.

    >>> as_regularizer("l2")
    L2(l2=0.01)
    """
    return as_option("regularizer", regularizer, _NAMED, "L2")
