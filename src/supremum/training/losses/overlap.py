"""Losses for segmentation, which measure how far two regions overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import jax
import jax.numpy as jnp

from supremum.argument_checks import real_within
from supremum.formats import as_format
from supremum.nn.functional import as_axes
from supremum.training.losses.loss import LossOptions
from supremum.training.losses.regression import PairLoss


class Tversky(PairLoss):
    """1 minus the overlap of labels and outputs, with weights for what is only in one of them.

    The overlap is `t / (t + alpha * fp + beta * fn)`: `t` is the sum of `y_true * y_pred`, `fp` of what only `y_pred`
    has, `fn` of what only `y_true` has. The denominator is at least the epsilon of the loss's dtype, the gap between 1
    and the next number, so two empty regions have a loss of 1.

    Salehi and others, "Tversky Loss Function for Image Segmentation", 2017.

    Args:
        alpha: the weight of false positives, at least 0.
        beta: the weight of false negatives, at least 0.
        axis: the axes to sum over. None sums over all, the examples included: there is one loss, which takes no weights
            of examples, and with several devices it is the mean of a loss for each.
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    Raises:
        ArgumentError: if a weight is negative, or for an axis that the inputs do not have; a `ValueError`.

    >>> loss = Tversky(alpha=0.25, beta=0.75, axis=-1)
    >>> loss(jnp.asarray([[1.0, 0.0]]), jnp.asarray([[1.0, 1.0]], "float16"))
    Array(0.19999999, dtype=float32)
    """

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        axis: int | Sequence[int] | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(**options)
        self.alpha: float = real_within("alpha", alpha, 0, math.inf, "0 or more")
        self.beta: float = real_within("beta", beta, 0, math.inf, "0 or more")
        self.axis: int | tuple[int, ...] | None = tuple(axis) if isinstance(axis, Sequence) else axis

    def reduced_axes(self, ndim: int) -> tuple[int, ...]:
        """The axes to sum over."""
        return tuple(range(ndim)) if self.axis is None else as_axes("axis", self.axis, ndim)

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each region; the result has the shape of the inputs without the axes to sum over."""
        y_true, y_pred = self.pair(y_true, y_pred)
        axes = self.reduced_axes(y_pred.ndim)
        shared, false_positives, false_negatives = (
            jnp.sum(each, axes) for each in (y_true * y_pred, (1 - y_true) * y_pred, y_true * (1 - y_pred))
        )
        total = shared + self.alpha * false_positives + self.beta * false_negatives
        return 1 - shared / jnp.maximum(total, as_format(self.dtype).eps)


class Dice(Tversky):
    """`1 - 2 * sum(y_true * y_pred) / (sum(y_true) + sum(y_pred))`: a `Tversky` with both weights one half.

    Milletari and others, "V-Net", 2016.

    Args:
        axis: as for `Tversky`.
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    >>> Dice(axis=-1)(jnp.asarray([[1.0, 0.0]]), jnp.asarray([[1.0, 1.0]], "float16"))
    Array(0.3333333, dtype=float32)
    """

    def __init__(self, axis: int | Sequence[int] | None = None, **options: Unpack[LossOptions]) -> None:
        super().__init__(axis=axis, **options)
