"""Metrics that measure the distance between outputs and labels."""

from __future__ import annotations

from typing import Any

import jax

from supremum.training.data import same_shaped_pair
from supremum.training.losses import absolute_errors, squared_errors
from supremum.training.metrics.metric import MeanMetric, widened


class MeanSquaredError(MeanMetric):
    """The squared difference, averaged over the last axis of each example, in at least float32.

    Args:
        name: the name of the metric.
    """

    def values(self, y_true: Any, y_pred: Any) -> jax.Array:
        """The mean of each example."""
        return squared_errors(*map(widened, same_shaped_pair(self.name, y_true, y_pred)))


class MeanAbsoluteError(MeanMetric):
    """The absolute difference, averaged over the last axis of each example, in at least float32.

    Args:
        name: the name of the metric.
    """

    def values(self, y_true: Any, y_pred: Any) -> jax.Array:
        """The mean of each example."""
        return absolute_errors(*map(widened, same_shaped_pair(self.name, y_true, y_pred)))
