"""Batch normalisation."""

from __future__ import annotations

from typing import Any

import jax

from supremum.nn.functional import at_least_float32, moments, normalise
from supremum.nn.initializers import ONES, ZEROS
from supremum.nn.layer import Layer
from supremum.nn.variables import Variable


class BatchNorm(Layer):
    """Normalise each channel by the statistics of the batch, or by their running averages outside training.

    Statistics are computed, averaged and stored in at least float32, whatever the compute dtype; only the result is
    rounded to it.

    Args:
        momentum: weight of the old running average at each training step.
        epsilon: added to the variance.
        dtype: the dtype policy.
    """

    def __init__(self, *, momentum: float = 0.99, epsilon: float = 1e-3, dtype: Any = None) -> None:
        super().__init__(dtype=dtype)
        self.momentum = momentum
        self.epsilon = epsilon

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add scale, offset and the running statistics, one number per channel."""
        shape = input_shape[-1:]
        wide = at_least_float32(self.variable_dtype)
        self.gamma = self.add_weight("gamma", shape, ONES, dtype=wide, autocast=False)
        self.beta = self.add_weight("beta", shape, ZEROS, dtype=wide, autocast=False)
        self.moving_mean = self.add_weight("moving_mean", shape, ZEROS, dtype=wide, trainable=False, autocast=False)
        self.moving_variance = self.add_weight(
            "moving_variance", shape, ONES, dtype=wide, trainable=False, autocast=False
        )

    def call(self, x: jax.Array, *, training: bool = False) -> jax.Array:
        """Normalise; in training also move the running statistics towards the batch's."""
        if training:
            mean, variance = moments(x, tuple(range(x.ndim - 1)))
            self._move(self.moving_mean, mean)
            self._move(self.moving_variance, variance)
        else:
            mean, variance = self.moving_mean.value, self.moving_variance.value
        return normalise(
            x, mean, variance, self.gamma.value, self.beta.value, epsilon=self.epsilon, dtype=self.compute_dtype
        )

    def _move(self, average: Variable, batch: jax.Array) -> None:
        average.assign(average.value * self.momentum + batch.astype(average.dtype) * (1 - self.momentum))
