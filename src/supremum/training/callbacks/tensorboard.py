"""A callback that writes losses and metrics for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from supremum.argument_checks import whole_number
from supremum.atomic_files import as_path, writing_error
from supremum.errors import UnknownNameError
from supremum.extras import require
from supremum.nn.functional import MOST
from supremum.training.callbacks.callback import Callback


class TensorBoard(Callback):
    """Write losses, metrics, loss scale and learning rate to event files, which `tensorboard --logdir logs` shows.

    Folders and names are those of Keras: `"epoch_loss"`, `"epoch_mae"` and so on in `train` and `validation`, by the
    number of the epoch, and with `update_freq` also `"batch_loss"` and so on in `train`, by the number of batches.
    With several processes, only the first writes.

    Args:
        log_dir: the folder.
        update_freq: `"epoch"` to write only after epochs, `"batch"` to write after each batch too, or a number of
            batches. The numbers of a batch are those of the epoch so far; reading them waits for the step.

    Raises:
        MissingPackageError: without tensorboardX; `pip install 'supremum[tensorboard]'` installs it.
        UnknownNameError: for another word as `update_freq`; a `ValueError`.

    >>> import tempfile
    >>> import numpy as np
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    >>> folder = Path(tempfile.mkdtemp())
    >>> writing = training.TensorBoard(folder)
    >>> _ = model.fit(x, y, validation_data=(x, y), callbacks=writing, verbose=0)
    >>> sorted(path.name for path in folder.iterdir())
    ['train', 'validation']
    """

    def __init__(self, log_dir: str | Path = "logs", *, update_freq: str | int = "epoch") -> None:
        require("TensorBoard", "tensorboardX")
        self._folder = as_path(log_dir)
        if isinstance(update_freq, str):
            if update_freq not in ("epoch", "batch"):
                raise UnknownNameError("update_freq", update_freq, ["epoch", "batch"])
            self._every = 1 if update_freq == "batch" else 0
        else:
            self._every = whole_number("update_freq", update_freq, 1, MOST)
        self._writers: dict[str, Any] = {}
        self._batches = self._written = 0
        self._last_batch = -1

    def on_train_begin(self) -> None:
        """Count batches from 0."""
        self._batches = self._written = 0

    def on_epoch_begin(self, epoch: int) -> None:  # noqa: ARG002
        """Count the batches of the epoch."""
        self._last_batch = -1

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        """Write the numbers of the epoch so far, if they are due."""
        self._batches += batch - self._last_batch
        self._last_batch = batch
        if self._every and self._batches - self._written >= self._every:
            self._written = self._batches
            self._write("train", "batch_", self._batches, logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Write the numbers of the epoch."""
        numbers = dict(logs)
        optimizer = self.model.optimizer
        if "learning_rate" in optimizer.hyperparameters:
            numbers.setdefault("learning_rate", float(optimizer.learning_rate))
        validation = {name.removeprefix("val_"): numbers.pop(name) for name in logs if name.startswith("val_")}
        self._write("train", "epoch_", epoch, numbers)
        if validation:
            self._write("validation", "epoch_", epoch, validation)

    def on_train_end(self) -> None:
        """Close the files."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def _write(self, part: str, prefix: str, step: int, numbers: Mapping[str, float]) -> None:
        if jax.process_index() > 0:
            return
        try:
            writer = self._writers.get(part) or self._open(part)
            for name, value in numbers.items():
                writer.add_scalar(prefix + name, value, step)
            writer.flush()
        except OSError as error:
            raise writing_error(self._folder / part, error) from error

    def _open(self, part: str) -> Any:
        from tensorboardX import SummaryWriter  # pyright: ignore  # tensorboardX is an optional dependency

        self._writers[part] = SummaryWriter(str(self._folder / part))
        return self._writers[part]
