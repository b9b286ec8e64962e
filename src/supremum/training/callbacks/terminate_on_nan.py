"""A callback that stops training when the loss is not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping

from supremum.training.callbacks.callback import Callback
from supremum.training.warnings import TrainingWarning
from supremum.user_frame import warn_user


class TerminateOnNaN(Callback):
    """Stop after the first batch after which the loss is inf or NaN, with a warning that says which.

    It reads the loss after every step, so steps are sent one by one, and Python waits for each. A step that a loss
    scale skips because its gradients overflow has a finite loss and does not stop training.

    Attributes:
        stopped_batch: the number of the batch in its epoch; None if training was not stopped.

    >>> import warnings
    >>> import numpy as np
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3), "float32"), np.full((8, 1), np.nan, "float32")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     history = model.fit(
    ...         x,
    ...         y,
    ...         batch_size=2,
    ...         epochs=9,
    ...         callbacks=training.TerminateOnNaN(),
    ...         verbose=0,
    ...     )
    >>> len(history.loss), str(caught[0].message)
    (1, 'TerminateOnNaN: the loss is nan after batch 0 of epoch 0 (counted from 0), so training stops')
    """

    def __init__(self) -> None:
        self._epoch = 0
        self.stopped_batch: int | None = None

    def on_train_begin(self) -> None:
        """Reset the result of an earlier training."""
        self.stopped_batch = None

    def on_epoch_begin(self, epoch: int) -> None:
        """Remember the number of the epoch."""
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        """Check the loss."""
        if math.isfinite(logs["loss"]):
            return
        self.stopped_batch = batch
        self.model.stop_training = True
        warn_user(
            f"TerminateOnNaN: the loss is {logs['loss']} after batch {batch} of epoch {self._epoch} (counted from 0), "
            "so training stops",
            TrainingWarning,
        )
