"""The metrics of a model, those of several outputs too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supremum.errors import ArgumentError, shown
from supremum.training.metrics.lookup import as_metric
from supremum.training.metrics.metric import Metric


class OutputMetric(Metric):
    """A metric of one of several outputs.

    Args:
        metric: the metric.
        output: the number or the name of the output.
    """

    def __init__(self, metric: Metric, output: Any) -> None:
        super().__init__(name=f"{output}_{metric.name}")
        self._metric = metric
        self._output = output

    def init(self) -> Any:
        """The state before the first batch."""
        return self._metric.init()

    def update(self, state: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """The state after another batch."""
        return self._metric.update(state, y_true[self._output], y_pred[self._output], sample_weight)

    def result_of(self, state: Any) -> Any:
        """The number."""
        return self._metric.result_of(state)


def compiled_metrics(metrics: Any) -> list[Metric]:
    """Metrics of what `compile` was given.

    Args:
        metrics: what `as_metric` takes, one or a list; for several outputs a list of lists or a dict of them.

    Raises:
        ArgumentError: for two metrics of one name; a `ValueError`.
    """
    made: list[Metric] = []
    if isinstance(metrics, Mapping) or (isinstance(metrics, (list, tuple)) and any(map(_is_several, metrics))):
        outputs = metrics.items() if isinstance(metrics, Mapping) else enumerate(metrics)
        for output, each in outputs:
            of_this = each if _is_several(each) else [] if each is None else [each]
            made += [OutputMetric(as_metric(metric), output) for metric in of_this]
    else:
        made = [as_metric(metric) for metric in (metrics if _is_several(metrics) else [metrics])]
    names = [metric.name for metric in made]
    for name in names:
        if names.count(name) > 1 or name == "loss":
            raise ArgumentError(f"two metrics are called {shown(name)}: give one of them another name=")
    return made


def _is_several(metrics: Any) -> bool:
    return isinstance(metrics, (list, tuple))
