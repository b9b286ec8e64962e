"""A callback that calls a function after each epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from supremum.training.callbacks.callback import Callback


class LambdaCallback(Callback):
    """A function that is called after each epoch.

    Args:
        function: a function of the epoch's number and its logs.
    """

    def __init__(self, function: Callable[[int, Mapping[str, float]], Any]) -> None:
        self._function = function

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Call it."""
        self._function(epoch, logs)
