"""Penalties on large weights and outputs, computed in at least float32.

Keras RFC 293, mixed precision, "Loss dtype": regularizing weights in float16 makes models worse.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from supremum.argument_checks import real_within
from supremum.mixed_precision import widen
from supremum.nn.functional import as_floating
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

    def __post_init__(self) -> None:
        for name, factor in vars(self).items():
            real_within(name, factor, 0, sys.float_info.max, "at least 0")

    def __call__(self, x: jax.Array) -> jax.Array:
        """The penalty.

        Args:
            x: an array of any shape, floating or complex.

        Returns:
            A real scalar of at least float32.

        Raises:
            OperandError: for anything else; a `TypeError`.
        """
        return self.penalty(widen(as_floating(type(self).__name__, "x", x, or_complex=True)))

    @abstractmethod
    def penalty(self, x: jax.Array) -> jax.Array:
        """The penalty on an array of at least float32."""


@dataclass(frozen=True)
class L1(Regularizer):
    """`l1 * sum(|x|)`.

    Args:
        l1: the factor, 0 or more; the default is that of Keras.

    Raises:
        OperandError: for a factor that is not a number; a `TypeError`.
        ArgumentError: for a negative factor; a `ValueError`.

    >>> L1(0.5)(jnp.asarray([1.0, -2.0], "float16"))
    Array(1.5, dtype=float32)
    """

    l1: float = 0.01

    def penalty(self, x: jax.Array) -> jax.Array:
        """The penalty on an array of at least float32."""
        return self.l1 * jnp.sum(jnp.abs(x))


@dataclass(frozen=True)
class L2(Regularizer):
    """`l2 * sum(x ** 2)`.

    Args:
        l2: the factor, 0 or more; the default is that of Keras.

    Raises:
        OperandError: for a factor that is not a number; a `TypeError`.
        ArgumentError: for a negative factor; a `ValueError`.

    >>> L2(0.5)(jnp.asarray([300.0], "float16"))  # the square is beyond float16
    Array(45000., dtype=float32)
    """

    l2: float = 0.01

    def penalty(self, x: jax.Array) -> jax.Array:
        """The penalty on an array of at least float32."""
        # For complex numbers this avoids the root in abs(x), which has no gradient at 0.
        return self.l2 * jnp.sum(jnp.real(x * jnp.conj(x)))


@dataclass(frozen=True)
class L1L2(Regularizer):
    """`l1 * sum(|x|) + l2 * sum(x ** 2)`.

    Args:
        l1: the factor of the absolute values, 0 or more.
        l2: the factor of the squares, 0 or more.

    Raises:
        OperandError: for a factor that is not a number; a `TypeError`.
        ArgumentError: for a negative factor; a `ValueError`.

    >>> L1L2(0.5, 0.25)(jnp.asarray([2.0, -2.0], "float16"))
    Array(4., dtype=float32)
    """

    l1: float = 0.0
    l2: float = 0.0

    def penalty(self, x: jax.Array) -> jax.Array:
        """The penalty on an array of at least float32."""
        return L1(self.l1).penalty(x) + L2(self.l2).penalty(x)


_NAMED: dict[str, Regularizer] = {"l1": L1(), "l2": L2(), "l1_l2": L1L2(l1=0.01, l2=0.01)}


def as_regularizer(regularizer: object) -> RegularizerFunction | None:
    """Convert a name to a regularizer with Keras' factor 0.01; return a function as it is.

    Args:
        regularizer: a function of an array that returns a scalar; `"l1"`, `"l2"` or `"l1_l2"`; or None.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.
        OperandError: for anything else; a `TypeError`.

    >>> as_regularizer("l2")
    L2(l2=0.01)
    """
    return None if regularizer is None else as_option("regularizer", regularizer, _NAMED, "L2()")
