"""The metrics that `compile` takes: by name, made of plain functions, and of one or several outputs of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from supremum.errors import ArgumentError, listed, shown
from supremum.training.losses import entries, weights_by_output
from supremum.training.metrics.accuracy import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from supremum.training.metrics.metric import FunctionMetric, Mean, MeanAbsoluteError, MeanSquaredError, Metric
from supremum.training.user_functions import resolve
from supremum.typing import ArrayLike, PyTree

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


def as_metric(metric: str | Metric | Callable[[Any, Any], Any]) -> Metric:
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
    instance = resolve("metric", metric, (Metric,), _NAMED, _of_function)
    if isinstance(metric, str):
        instance.name = metric
    return instance


def _of_function(function: Callable[[Any, Any], Any]) -> FunctionMetric:
    return FunctionMetric(function, getattr(function, "name", None))


class OutputMetric(Metric):
    """A metric of one of several outputs.

    Args:
        metric: the metric.
        output: the index or name of the output.
        output_names: the names of all outputs; None if they have none.
    """

    def __init__(self, metric: Metric, output: str | int, output_names: Sequence[str] | None) -> None:
        super().__init__(name=f"{output}_{metric.name}")
        self._metric = metric
        self._output = output
        self._output_names = output_names

    def init(self) -> Any:
        """The state before the first batch."""
        return self._metric.init()

    def update(self, state: PyTree, y_true: PyTree, y_pred: PyTree, sample_weight: ArrayLike | None = None) -> Any:
        """The state after one more batch."""
        labels, outputs = (entries(each, self._output_names) for each in (y_true, y_pred))
        if self._output not in labels or self._output not in outputs:
            raise ArgumentError(
                f"there is a metric for the output {shown(self._output)}, but the labels are "
                f"{listed(map(shown, labels))} and the outputs are {listed(map(shown, outputs))}"
            )
        weights = weights_by_output(sample_weight, outputs, self._output_names)
        return self._metric.update(state, labels[self._output], outputs[self._output], weights[self._output])

    def result_of(self, state: PyTree) -> Any:
        """The value of the metric."""
        return self._metric.result_of(state)


class OutputLoss(Mean):
    """The mean over an epoch of the loss of one of several outputs, which the step computes for the total loss.

    Args:
        name: the name of the loss, such as `"digit_loss"`.
    """


def compile_metrics(
    metrics: str | Metric | Callable[..., Any] | Sequence[Any] | Mapping[Any, Any],
    losses: Sequence[str] = (),
    output_names: Sequence[str] | None = None,
) -> list[Metric]:
    """Convert the `metrics` argument of `compile` to a list of metrics, after the losses of several outputs.

    Args:
        metrics: what `as_metric` takes, or a list of that; for several outputs a list of lists, or a dict.
        losses: the names of the losses of outputs.
        output_names: as for `CompiledLoss`.

    Raises:
        ArgumentError: if two metrics have the same name, or one is called "loss"; a `ValueError`.
    """
    instances: list[Metric] = [OutputLoss(name) for name in losses]
    several: Any = metrics if isinstance(metrics, (list, tuple, Mapping)) else [metrics]
    if isinstance(several, Mapping) or any(map(_is_several, several)):
        for output, each in entries(several, output_names).items():
            of_output = each if _is_several(each) else [] if each is None else [each]
            instances += [OutputMetric(as_metric(metric), output, output_names) for metric in of_output]
    else:
        instances += map(as_metric, several)
    names = ["loss", *(metric.name for metric in instances)]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(
                f"metrics and the loss must have different names, got two called {shown(name)}; use a different name="
            )
    return instances


def _is_several(metrics: object) -> bool:
    return isinstance(metrics, (list, tuple))
