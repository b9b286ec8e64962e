"""Metrics by name, as functions, and as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supremum.errors import OperandError, UnknownNameError, shown
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
    """A metric as it is, that of a name, or one made of a function.

    Args:
        metric: a `Metric`; a name, such as `"accuracy"`, by which the new metric is called; or a function of labels and
            outputs, a loss for one.

    Raises:
        UnknownNameError: for a name that no metric has, with the near ones; a `ValueError`.
        OperandError: for anything else; a `TypeError`.

    >>> as_metric("mse")
    MeanSquaredError(name='mse')
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        if metric not in _NAMED:
            raise UnknownNameError("metric", metric, _NAMED)
        made = _NAMED[metric]()
        made.name = metric
        return made
    if isinstance(metric, type):
        raise OperandError(f"a metric is an object, and {metric.__name__} a class: give {metric.__name__}()")
    if not callable(metric):
        raise OperandError(f"a metric is a name, a Metric or a function of y_true and y_pred, not {shown(metric)}")
    return FunctionMetric(metric, getattr(metric, "name", None))
