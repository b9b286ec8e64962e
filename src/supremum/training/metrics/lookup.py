"""Metrics by name, as functions, and as they are."""

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
    made = looked_up("metric", metric, (Metric,), _NAMED, _of_function)
    if isinstance(metric, str):
        made.name = metric
    return made


def _of_function(function: Callable[[Any, Any], Any]) -> FunctionMetric:
    return FunctionMetric(function, getattr(function, "name", None))
