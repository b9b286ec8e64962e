"""Stopping when a number no longer gets better."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supremum.argument_checks import whole_number
from supremum.nn import load_variables, split_variables
from supremum.training.callbacks.monitor_callback import MonitorCallback


class EarlyStopping(MonitorCallback):
    """Stop when a number has not got better for some epochs. A number that is inf or NaN is never better.

    Args:
        monitor: the number's name in the logs.
        patience: after how many epochs in a row in which it is not better to stop, as in Keras; 0 is as 1, and the
            first epoch is never the last.
        min_delta: by how much it must be better.
        mode: `"min"` or `"max"`, what is better; `"auto"` goes by the name.
        restore_best_weights: whether the model gets back the weights of the best epoch. If the number was inf or NaN
            in every epoch, the model keeps the weights of the last one, with a warning.

    Attributes:
        stopped_epoch: the epoch after which training was stopped; None where it was not.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        *,
        patience: int = 0,
        min_delta: float = 0.0,
        mode: str = "auto",
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self._patience = whole_number("patience", patience, 0, 2**31 - 1)
        self._restores = restore_best_weights
        self._weights: dict[str, Any] | None = None
        self._waited = 0
        self.stopped_epoch: int | None = None

    def on_train_begin(self) -> None:
        """Forget what an earlier training came to."""
        self.reset_best()
        self._waited, self._weights, self.stopped_epoch = 0, None, None

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Compare."""
        if self.is_better(logs):
            self._waited = 0
            if self._restores:
                trainable, other = split_variables(self.model)
                self._weights = trainable | other
            return
        self._waited += 1
        if self._waited >= self._patience and self.epochs_seen > 1:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self) -> None:
        """Give back the best weights, if that was asked for."""
        if self._weights is not None:
            load_variables(self.model, self._weights)
        elif self._restores:
            self.warn_if_never_finite("the model has the weights of the last epoch")
