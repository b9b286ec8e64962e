"""The base class of callbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Callback:
    """Called at each stage of training, evaluation and prediction; a method does nothing unless it is overridden.

    `logs` are numbers by name. The logs of a batch are fetched from the device when they are read, which waits for the
    step. With several steps in one dispatch, batch methods are called once, for the last step.

    Attributes:
        model: the `Model` or `Sequential` in training; `model.stop_training = True` ends training after the batch.
    """

    model: Any

    def set_model(self, model: Any) -> None:
        """Set the model, before any other method is called.

        Args:
            model: the model.
        """
        self.model = model

    def on_train_begin(self) -> None:
        """Called before the first epoch."""

    def on_epoch_begin(self, epoch: int) -> None:
        """Called before an epoch.

        Args:
            epoch: its number, from 0.
        """

    def on_train_batch_begin(self, batch: int) -> None:
        """Called before each dispatch.

        Args:
            batch: the number of the first batch in it, from 0 in each epoch.
        """

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        """Called after each dispatch.

        Args:
            batch: the number of the last batch in it, from 0 in each epoch.
            logs: the loss and the metrics of the epoch so far.
        """

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Called after an epoch and its validation.

        Args:
            epoch: its number, from 0.
            logs: the loss and the metrics of the epoch.
        """

    def on_train_end(self) -> None:
        """Called after the last epoch, and also when training is stopped or fails."""

    def on_test_begin(self) -> None:
        """Called before an evaluation, including the validation in `fit`."""

    def on_test_batch_begin(self, batch: int) -> None:
        """Called before each batch of an evaluation.

        Args:
            batch: its number, from 0.
        """

    def on_test_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        """Called after each batch of an evaluation.

        Args:
            batch: its number, from 0.
            logs: the loss and the metrics so far.
        """

    def on_test_end(self, logs: Mapping[str, float]) -> None:
        """Called after an evaluation.

        Args:
            logs: the loss and the metrics.
        """

    def on_predict_begin(self) -> None:
        """Called before the first batch of `predict`."""

    def on_predict_batch_begin(self, batch: int) -> None:
        """Called before each batch of `predict`.

        Args:
            batch: its number, from 0.
        """

    def on_predict_batch_end(self, batch: int) -> None:
        """Called after each batch of `predict`.

        Args:
            batch: its number, from 0.
        """

    def on_predict_end(self) -> None:
        """Called after the last batch of `predict`."""


class LambdaCallback(Callback):
    """Call a function after each epoch.

    Args:
        function: a function of the epoch's number and its logs.
    """

    def __init__(self, function: Callable[[int, Mapping[str, float]], Any]) -> None:
        self._function = function

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Call the function."""
        self._function(epoch, logs)
