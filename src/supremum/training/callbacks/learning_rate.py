"""Callbacks that change the learning rate: by the number of the epoch, or when a number stops improving."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from supremum.argument_checks import function, real_within, whole_number
from supremum.errors import ArgumentError, shown
from supremum.nn.functional import MOST
from supremum.optimizers import Hyperparameter
from supremum.training.callbacks.callback import Callback
from supremum.training.callbacks.monitor_callbacks import MonitorCallback

_NAME = "learning_rate"


def learning_rate_of(callback: Callback) -> Hyperparameter:
    """Return the learning rate of the model in training.

    Raises:
        ArgumentError: for an optimizer without a learning rate that can be set.
    """
    optimizer = callback.model.optimizer
    if _NAME not in optimizer.hyperparameters:
        raise ArgumentError(
            f"{type(callback).__name__} needs an optimizer with a learning_rate, got {shown(optimizer)}: make "
            "it with optax.inject_hyperparams, as in optax.inject_hyperparams(optax.adam)(learning_rate=1e-3)"
        )
    return optimizer.learning_rate


class LearningRateScheduler(Callback):
    """Set the learning rate before each epoch. The history has it under the name `"learning_rate"`.

    A schedule of steps is compiled into the step and needs no callback: `Adam(lambda step: 1e-3 / (1 + step))`.

    Args:
        schedule: a function of an epoch's number and the current learning rate, or of the number alone, that returns
            the learning rate of the epoch.

    Raises:
        OperandError: for anything that is not a function; a `TypeError`.

    >>> import numpy as np
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    >>> halving = training.LearningRateScheduler(
    ...     lambda epoch, rate: rate / 2 if epoch else 0.5
    ... )
    >>> model.fit(x, y, epochs=3, callbacks=halving, verbose=0).history["learning_rate"]
    [0.5, 0.25, 0.125]
    """

    def __init__(self, schedule: Callable[..., float]) -> None:
        function("schedule", schedule, "lambda epoch, rate: rate * 0.9")
        self._schedule = schedule
        self._takes_rate = _takes_two(schedule)

    def on_epoch_begin(self, epoch: int) -> None:
        """Set the learning rate."""
        rate = learning_rate_of(self)
        rate.assign(self._schedule(epoch, float(rate)) if self._takes_rate else self._schedule(epoch))

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:  # noqa: ARG002
        """Add the learning rate of the epoch to the logs."""
        logs[_NAME] = float(learning_rate_of(self))


class ReduceLROnPlateau(MonitorCallback):
    """Multiply the learning rate by a factor when a number has not improved for some epochs.

    An inf or NaN never counts as an improvement. The history has the learning rate of each epoch under the name
    `"learning_rate"`.

    Args:
        monitor: the number's name in the logs.
        factor: what the learning rate is multiplied by, above 0 and below 1.
        patience: reduce after this many epochs in a row without improvement, as in Keras; 0 means 1.
        mode: `"min"` or `"max"`, whether lower or higher is better; `"auto"` decides by the name.
        min_delta: the amount that an improvement must exceed.
        cooldown: how many epochs after a reduction do not count.
        min_lr: the lowest learning rate.

    Raises:
        ArgumentError: for a factor that is not between 0 and 1, or a negative number; a `ValueError`.

    >>> import numpy as np
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    >>> reducing = training.ReduceLROnPlateau(
    ...     "loss", factor=0.5, patience=1, min_delta=1e9
    ... )  # nothing improves so much
    >>> model.optimizer.learning_rate = 1.0
    >>> model.fit(x, y, epochs=4, callbacks=reducing, verbose=0).history[
    ...     "learning_rate"
    ... ]
    [1.0, 1.0, 0.5, 0.25]
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        *,
        factor: float = 0.1,
        patience: int = 10,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self._factor = real_within("factor", factor, 0, 1, "above 0 and below 1")
        if self._factor in (0, 1):
            raise ArgumentError(f"factor must be above 0 and below 1, got {factor}: give factor=0.1")
        self._patience = whole_number("patience", patience, 0, MOST)
        self._cooldown = whole_number("cooldown", cooldown, 0, MOST)
        self._lowest = real_within("min_lr", min_lr, 0, float("inf"), "0 or more")
        self._waited = self._cooling = 0

    def on_train_begin(self) -> None:
        """Reset the results of an earlier training."""
        self.reset_best()
        self._waited = self._cooling = 0

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:  # noqa: ARG002
        """Compare the number with the best one so far, and reduce the learning rate if patience has run out."""
        rate = learning_rate_of(self)
        logs[_NAME] = float(rate)
        if self._cooling:
            self._cooling -= 1
            self._waited = 0
        if self.is_better(logs):
            self._waited = 0
        elif not self._cooling:
            self._waited += 1
            if self._waited >= self._patience and float(rate) > self._lowest:
                rate.assign(max(float(rate) * self._factor, self._lowest))
                self._waited, self._cooling = 0, self._cooldown


def _takes_two(schedule: Any) -> bool:
    try:
        inspect.signature(schedule).bind(0, 0.0)
    except (TypeError, ValueError):  # a `ValueError` for functions without a signature
        return False
    return True
