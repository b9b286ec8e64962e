"""Lookup of metrics by name, and metrics made of plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supremum.training.lookup import looked_up
from supremum.training.metrics.accuracy import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from supremum.training.metrics.metric import FunctionMetric, Metric
from supremum.training.metrics.regression import MeanAbsoluteError, MeanSquaredError

_NAMED: dict[str, Callable[[], Metric]] = {
    "accuracy": Accuracy,
    "acc": Accuracy,
    "binary_accuracy": BinaryAccuracy,
    "categorical_accuracy": CategoricalAccuracy,
    "mean_absolute_error": MeanAbsoluteError,
    "mae": MeanAbsoluteError,
    "mean_squared_error": MeanSquaredError,
    "mse": MeanSquaredError,
    "sparse_categorical_accuracy": SparseCategoricalAccuracy,
    "top_k_categorical_accuracy": TopKCategoricalAccuracy,
}


def as_metric(metric: Any) -> Metric:
    """Return a metric from a `Metric`, a name or a function.

    Args:
        metric: a `Metric`, which is returned as it is; a name, such as `"accuracy"`, which the new metric keeps; or a
            function of labels and outputs, such as a loss.

    Raises:
        UnknownNameError: if no metric has this name; the message suggests similar names; a `ValueError`.
        OperandError: if `metric` is anything else; a `TypeError`.

    >>> as_metric("mse")
    MeanSquaredError(name='mse')
    """
    made = looked_up("metric", metric, (Metric,), _NAMED, _of_function)
    if isinstance(metric, str):
        made.name = metric
    return made


def _of_function(function: Callable[[Any, Any], Any]) -> FunctionMetric:
    return FunctionMetric(function, getattr(function, "name", None))
