"""Losses for regression: squared and absolute errors, angles, counts and distributions."""

from __future__ import annotations

import math
from typing import Unpack

import jax
import jax.numpy as jnp
from jax import lax

from supremum.errors import ArgumentError, shown
from supremum.formats import as_format
from supremum.nn.functional import as_axes
from supremum.training.data import aligned_pair, check_has_axes
from supremum.training.losses.loss import Loss, LossOptions


def mean_of_each(values: jax.Array) -> jax.Array:
    """Average over the last axis of each example; values of shape (batch,) are returned as they are."""
    return jnp.mean(values, -1) if values.ndim > 1 else values


def squared_errors(y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
    """The mean of the squared differences of each example."""
    return mean_of_each(jnp.square(y_pred - y_true))


def absolute_errors(y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
    """The mean of the absolute differences of each example."""
    return mean_of_each(jnp.abs(y_pred - y_true))


def weight_times(weights: jax.Array, values: jax.Array) -> jax.Array:
    """Multiply weights and values; the product is 0 where the weight is 0, even if the value is not finite."""
    return jnp.where(weights == 0, jnp.zeros_like(values), weights * values)


class PairLoss(Loss):
    """A loss of two real arrays of one shape; a last axis of length 1 may be missing in one of them."""

    def pair(self, y_true: jax.Array, y_pred: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Check both arrays and cast them to the loss's dtype.

        Raises:
            ArgumentError: if their shapes differ; a `ValueError`.
            OperandError: if either is several arrays, or complex; a `TypeError`.
        """
        y_true, y_pred = aligned_pair(self.name, y_true, y_pred)
        return y_true.astype(self.dtype), y_pred.astype(self.dtype)


class MeanSquaredError(PairLoss):
    """The square of the difference, averaged over the last axis of each example.

    Args:
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> MeanSquaredError()(
    ...     jnp.zeros((2, 2)), jnp.asarray([[300.0, 0.0], [0.0, 0.0]], "float16")
    ... )
    Array(22500., dtype=float32)
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, shape (batch, ...) without the last axis; (batch,) for (batch,) inputs."""
        return squared_errors(*self.pair(y_true, y_pred))


class MeanAbsoluteError(PairLoss):
    """The absolute difference, averaged over the last axis of each example.

    Args:
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> MeanAbsoluteError()(jnp.zeros((2, 1)), jnp.asarray([[1.0], [3.0]], "float16"))
    Array(2., dtype=float32)
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, as for `MeanSquaredError`."""
        return absolute_errors(*self.pair(y_true, y_pred))


class MeanAbsolutePercentageError(PairLoss):
    """The absolute difference in percent of the size of the label, averaged over the last axis of each example.

    The size is at least the epsilon of the loss's dtype, the gap between 1 and the next number.

    Args:
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> MeanAbsolutePercentageError()(
    ...     jnp.asarray([[2.0, 4.0]]), jnp.asarray([[1.0, 4.0]], "float16")
    ... )
    Array(25., dtype=float32)
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, as for `MeanSquaredError`."""
        y_true, y_pred = self.pair(y_true, y_pred)
        size = jnp.maximum(jnp.abs(y_true), as_format(self.dtype).eps)
        return 100 * mean_of_each(jnp.abs(y_pred - y_true) / size)


class MeanSquaredLogarithmicError(PairLoss):
    """The square of the difference of `log(1 + y)`, averaged over the last axis of each example.

    Both are at least the epsilon of the loss's dtype, the gap between 1 and the next number.

    Args:
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> round(
    ...     float(MeanSquaredLogarithmicError()(jnp.zeros((1, 1)), jnp.ones((1, 1)))), 4
    ... )
    0.4805
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, as for `MeanSquaredError`."""
        eps = as_format(self.dtype).eps
        return squared_errors(*(jnp.log1p(jnp.maximum(each, eps)) for each in self.pair(y_true, y_pred)))


class LogCosh(PairLoss):
    """The logarithm of the hyperbolic cosine of the difference, averaged over the last axis of each example.

    Small differences count like half their square, large ones like their size.

    Args:
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> round(
    ...     float(LogCosh()(jnp.zeros((1, 1)), jnp.full((1, 1), 1000.0, "float16"))), 2
    ... )
    999.31
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, as for `MeanSquaredError`."""
        y_true, y_pred = self.pair(y_true, y_pred)
        size = jnp.abs(y_pred - y_true)
        # log((exp(d) + exp(-d)) / 2) without overflow, and accurate near 0.
        return mean_of_each(size + jnp.log1p(jnp.expm1(-2 * size) / 2))


class Huber(PairLoss):
    """Half the squared difference up to `delta`, and `delta * (size - delta / 2)` beyond, averaged over the last axis.

    Huber, "Robust Estimation of a Location Parameter", 1964.

    Args:
        delta: the size of the difference at which the loss changes from quadratic to linear.
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    Raises:
        ArgumentError: if `delta` is not positive; a `ValueError`.

    >>> Huber(delta=1.0, reduction=None)(jnp.zeros((2, 1)), jnp.asarray([[0.5], [3.0]]))
    Array([0.125, 2.5  ], dtype=float32)
    """

    def __init__(self, delta: float = 1.0, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        if not (isinstance(delta, (int, float)) and math.isfinite(delta) and delta > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"delta must be a positive number, got {shown(delta)}: give delta=1.0")
        self.delta = delta

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, as for `MeanSquaredError`."""
        y_true, y_pred = self.pair(y_true, y_pred)
        size = jnp.abs(y_pred - y_true)
        near = jnp.minimum(size, self.delta)
        return mean_of_each(near * (size - 0.5 * near))


class Poisson(PairLoss):
    """`y_pred - y_true * log(y_pred)`, for counts with the mean `y_pred`; averaged over the last axis.

    The logarithm is taken of `y_pred` plus the epsilon of the loss's dtype, the gap between 1 and the next number.

    Args:
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> Poisson()(jnp.asarray([[0.0]]), jnp.asarray([[2.0]]))
    Array(2., dtype=float32)
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, as for `MeanSquaredError`."""
        y_true, y_pred = self.pair(y_true, y_pred)
        return mean_of_each(y_pred - weight_times(y_true, jnp.log(y_pred + as_format(self.dtype).eps)))


class KLDivergence(PairLoss):
    """`y_true * log(y_true / y_pred)`, summed over the last axis: how far one distribution is from another.

    Kullback and Leibler, "On Information and Sufficiency", 1951. Both are clipped to between the epsilon of the loss's
    dtype (the gap between 1 and the next number) and 1, as in Keras, which keeps the logarithms finite.

    Args:
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> round(
    ...     float(KLDivergence()(jnp.asarray([[1.0, 0.0]]), jnp.asarray([[0.5, 0.5]]))),
    ...     3,
    ... )
    0.693
    """

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, shape (batch, ...) without the last axis."""
        y_true, y_pred = (jnp.clip(each, as_format(self.dtype).eps, 1.0) for each in self.pair(y_true, y_pred))
        check_has_axes(self.name, y_pred)
        return jnp.sum(y_true * (jnp.log(y_true) - jnp.log(y_pred)), -1)


class CosineSimilarity(PairLoss):
    """Minus the cosine of the angle between two vectors: -1 for the same direction, 1 for opposite directions.

    A zero vector has no direction: its cosine and the gradient of its cosine are 0.

    Args:
        axis: the axis of the vectors.
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> CosineSimilarity(reduction=None)(
    ...     jnp.asarray([[1.0, 0.0], [1.0, 0.0]]),
    ...     jnp.asarray([[2.0, 0.0], [-2.0, 0.0]]),
    ... )
    Array([-1.,  1.], dtype=float32)
    """

    def __init__(self, axis: int = -1, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.axis = axis

    def reduced_axes(self, ndim: int) -> tuple[int, ...]:
        """The axis of the vectors."""
        return as_axes("axis", self.axis, ndim)

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each vector; the result has the shape of the inputs without the axis of the vectors."""
        y_true, y_pred = self.pair(y_true, y_pred)
        check_has_axes(self.name, y_pred)
        (axis,) = as_axes("axis", self.axis, y_pred.ndim)
        return -jnp.sum(_direction(y_true, axis) * _direction(y_pred, axis), axis)


def _direction(x: jax.Array, axis: int) -> jax.Array:
    """Normalize vectors; dividing by the largest entry first keeps the squares from overflowing or vanishing."""
    largest = lax.stop_gradient(jnp.max(jnp.abs(x), axis, keepdims=True, initial=0.0))
    x = x / jnp.where(largest == 0, jnp.ones_like(largest), largest)
    square = jnp.sum(x * x, axis, keepdims=True)
    none = square == 0
    return x * jnp.where(none, jnp.zeros_like(square), lax.rsqrt(jnp.where(none, jnp.ones_like(square), square)))
