"""Metrics, accumulated over an epoch on the device.

They see labels and outputs, and never change them.
"""

from supremum.public_names import public_names
from supremum.training.metrics.accuracy import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from supremum.training.metrics.compiled_metrics import OutputLoss, as_metric, compile_metrics
from supremum.training.metrics.metric import FunctionMetric, Mean, Metric

__all__ = [
    "Accuracy", "BinaryAccuracy", "CategoricalAccuracy", "FunctionMetric", "Mean", "Metric", "OutputLoss",
    "SparseCategoricalAccuracy", "TopKCategoricalAccuracy", "as_metric", "compile_metrics",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
