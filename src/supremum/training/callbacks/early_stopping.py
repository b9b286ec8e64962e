"""A callback that stops training when a number no longer improves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supremum.argument_checks import whole_number
from supremum.nn import load_variables, split_variables
from supremum.training.callbacks.monitor_callback import MonitorCallback


class EarlyStopping(MonitorCallback):
    """Stop when a number has not improved for some epochs. An inf or NaN never counts as an improvement.

    Args:
        monitor: the number's name in the logs.
        patience: stop after this many epochs in a row without improvement, as in Keras; 0 means 1, and training never
            stops after the first epoch.
        min_delta: the amount that an improvement must exceed.
        mode: `"min"` or `"max"`, whether lower or higher is better; `"auto"` decides by the name.
        restore_best_weights: whether to restore the weights of the best epoch. If the number was inf or NaN in every
            epoch, the model keeps the weights of the last epoch, with a warning.

    Attributes:
        stopped_epoch: the epoch after which training was stopped; None if it was not.
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
        """Reset the results of an earlier training."""
        self.reset_best()
        self._waited, self._weights, self.stopped_epoch = 0, None, None

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Compare the number with the best one so far, and stop if patience has run out."""
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
        """Restore the best weights, if requested."""
        if self._weights is not None:
            load_variables(self.model, self._weights)
        elif self._restores:
            self.warn_if_never_finite("the model has the weights of the last epoch")
