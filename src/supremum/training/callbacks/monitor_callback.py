"""Callbacks that look for the best epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping

from supremum.argument_checks import chosen, real_within, text
from supremum.errors import UnknownNameError
from supremum.training.callbacks.callback import Callback
from supremum.training.warnings import TrainingWarning
from supremum.user_frame import warn_user


class MonitorCallback(Callback):
    """The base of callbacks that compare a number with its best value so far; inf and NaN are never better.

    Args:
        monitor: the number's name in the logs.
        mode: `"min"` or `"max"`, what is better; `"auto"` for less, but of accuracies and the like more.
        min_delta: by how much it must be better.
    """

    def __init__(self, monitor: str, mode: str, min_delta: float) -> None:
        chosen("mode", mode, ("auto", "min", "max"))
        real_within("min_delta", min_delta, 0, math.inf, "0 or more")
        grows = any(part in text("monitor", monitor) for part in ("acc", "similarity", "precision", "recall", "auc"))
        self.monitor = monitor
        self._sign = -1 if mode == "max" or (mode == "auto" and grows) else 1
        self._min_delta = min_delta
        self.reset_best()

    def reset_best(self) -> None:
        """Forget the best value."""
        self.best, self.epochs_seen = math.inf * self._sign, 0

    def is_better(self, logs: Mapping[str, float]) -> bool:
        """Compare the number of an epoch with the best one, and keep it if it is better.

        Args:
            logs: what the epoch came to.
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
            consequence: what that means for the user.
        """
        if self.epochs_seen and not math.isfinite(self.best):
            warn_user(
                f"{type(self).__name__}: {self.monitor} was inf or NaN in every epoch, so no epoch was the best; "
                f"{consequence}",
                TrainingWarning,
            )
