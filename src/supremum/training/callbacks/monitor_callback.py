"""The base class of callbacks that look for the best epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping

from supremum.argument_checks import chosen, real_within, text
from supremum.errors import UnknownNameError
from supremum.training.callbacks.callback import Callback
from supremum.training.warnings import TrainingWarning
from supremum.user_frame import warn_user


class MonitorCallback(Callback):
    """The base class of callbacks that compare a number with its best value so far; inf and NaN are never better.

    Args:
        monitor: the number's name in the logs.
        mode: `"min"` or `"max"`, whether lower or higher is better; `"auto"` means higher for accuracies and similar
            metrics, lower otherwise.
        min_delta: the amount that an improvement must exceed.
    """

    def __init__(self, monitor: str, mode: str, min_delta: float) -> None:
        chosen("mode", mode, ("auto", "min", "max"))
        real_within("min_delta", min_delta, 0, math.inf, "0 or more")
        higher_is_better = any(
            part in text("monitor", monitor) for part in ("acc", "similarity", "precision", "recall", "auc")
        )
        self.monitor = monitor
        self._sign = -1 if mode == "max" or (mode == "auto" and higher_is_better) else 1
        self._min_delta = min_delta
        self.reset_best()

    def reset_best(self) -> None:
        """Forget the best value."""
        self.best, self.epochs_seen = math.inf * self._sign, 0

    def is_better(self, logs: Mapping[str, float]) -> bool:
        """Compare the number of an epoch with the best one, and keep it if it is better.

        Args:
            logs: the loss and the metrics of the epoch.
        """
        if self.monitor not in logs:
            raise UnknownNameError("number to monitor", self.monitor, logs, type(self).__name__)
        self.epochs_seen += 1
        value = logs[self.monitor]
        if not math.isfinite(value) or not self._sign * value < self._sign * self.best - self._min_delta:
            return False
        self.best = value
        return True

    def warn_if_never_finite(self, consequence: str) -> None:
        """Warn if no epoch had a finite number.

        Args:
            consequence: what follows from that, for the message.
        """
        if self.epochs_seen and not math.isfinite(self.best):
            warn_user(
                f"{type(self).__name__}: {self.monitor} was inf or NaN in every epoch, so no epoch was the best; "
                f"{consequence}",
                TrainingWarning,
            )
