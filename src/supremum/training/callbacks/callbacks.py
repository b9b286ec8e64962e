"""What looks on while a model trains, and may stop it."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from supremum.argument_checks import chosen, real_within, text, whole_number
from supremum.atomic_files import as_path, check_writable, writing_error
from supremum.errors import ArgumentError, OperandError, UnknownNameError, shown
from supremum.nn import load_variables, split_variables
from supremum.nn.functional.shape_checks import positive_int
from supremum.training.checkpoints.arrays_folder import check_folder_writable
from supremum.training.checkpoints.stored_arrays import FOLDER, checked_format
from supremum.training.warnings import TrainingWarning
from supremum.user_frame import warn_user


class Callback:
    """Something that is told what happens; each method does nothing unless it is overridden.

    `logs` are numbers by name. Those of a batch are fetched from the device when they are looked at, which waits for
    the step. With several steps in one dispatch a callback is told of the last of them.

    Attributes:
        model: the `Model` or `Sequential` that trains; `model.stop_training = True` ends the training after the batch.
    """

    model: Any

    def set_model(self, model: Any) -> None:
        """Called first.

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
            logs: what it came to.
        """

    def on_train_end(self) -> None:
        """Called after the last epoch, also where training was stopped or failed."""

    def on_test_begin(self) -> None:
        """Called before an evaluation, also that of the validation data in `fit`."""

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
            logs: what it came to.
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
    """A function that is called after each epoch.

    Args:
        function: a function of the epoch's number and its logs.
    """

    def __init__(self, function: Callable[[int, Mapping[str, float]], Any]) -> None:
        self._function = function

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Call it."""
        self._function(epoch, logs)


class _Watching(Callback):
    """Knows whether a number got better; inf and NaN never are.

    Args:
        monitor: the number's name in the logs.
        mode: `"min"` or `"max"`, what is better; `"auto"` for less, but of accuracies and the like more.
        min_delta: by how much it has to be better.
    """

    def __init__(self, monitor: str, mode: str, min_delta: float) -> None:
        chosen("mode", mode, ("auto", "min", "max"))
        real_within("min_delta", min_delta, 0, math.inf, "0 or more")
        grows = any(part in text("monitor", monitor) for part in ("acc", "similarity", "precision", "recall", "auc"))
        self.monitor = monitor
        self._sign = -1 if mode == "max" or (mode == "auto" and grows) else 1
        self._min_delta = min_delta
        self.best = math.inf * self._sign
        self._epochs_seen = 0

    def _is_better(self, logs: Mapping[str, float]) -> bool:
        if self.monitor not in logs:
            raise UnknownNameError("number to monitor", self.monitor, logs, type(self).__name__)
        self._epochs_seen += 1
        value = logs[self.monitor]
        if not math.isfinite(value) or not self._sign * value < self._sign * self.best - self._min_delta:
            return False
        self.best = value
        return True

    def _warn_if_none_was_finite(self, consequence: str) -> None:
        if self._epochs_seen and not math.isfinite(self.best):
            warn_user(
                f"{type(self).__name__}: {self.monitor} was inf or NaN in every epoch, so that none was the best: "
                f"{consequence}",
                TrainingWarning,
            )


class EarlyStopping(_Watching):
    """Stop when a number has not got better for some epochs. A number that is inf or NaN is never better.

    Args:
        monitor: the number's name in the logs.
        patience: after how many epochs in a row in which it is no better to stop, as in Keras; 0 is as 1, and the
            first epoch is never the last.
        min_delta: by how much it has to be better.
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
        self.best, self._waited, self._weights, self.stopped_epoch = math.inf * self._sign, 0, None, None
        self._epochs_seen = 0

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Compare."""
        if self._is_better(logs):
            self._waited = 0
            if self._restores:
                trainable, other = split_variables(self.model)
                self._weights = trainable | other
            return
        self._waited += 1
        if self._waited >= self._patience and self._epochs_seen > 1:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self) -> None:
        """Give back the best weights, if that was asked for."""
        if self._weights is not None:
            load_variables(self.model, self._weights)
        elif self._restores:
            self._warn_if_none_was_finite("the model has the weights of the last epoch")


class ModelCheckpoint(_Watching):
    """Save the model after epochs.

    Args:
        path: a file, or a folder of orbax; `{epoch}` and the names of logs in braces are filled in,
            `"weights-{epoch:02d}-{val_loss:.3f}"`.
        monitor: the number that says which epoch is best.
        save_best_only: whether to save only where it is better than in all epochs before. A number that is inf or NaN
            is never better; if it was so in every epoch, nothing was saved, with a warning.
        save_weights_only: whether to save the weights alone, and not the optimizer, the loss scale and random keys
            that go on with a training.
        mode: `"min"` or `"max"`, what is better; `"auto"` goes by the name.
        every: after how many epochs to save.
        format: `"safetensors"` for files, which None means as well, or `"orbax"` for folders, of sharded arrays too.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        monitor: str = "val_loss",
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        every: int = 1,
        format: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(monitor, mode, 0.0)
        self._format = checked_format(format)
        self._path = str(as_path(path))
        self._best_only = save_best_only
        self._weights_only = save_weights_only
        self._every = positive_int("every", every)

    def on_train_begin(self) -> None:
        """See that it can be written."""
        super().on_train_begin()
        check = check_folder_writable if checked_format(self._format) == FOLDER else check_writable
        check(Path(self._path))

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Save."""
        if (epoch + 1) % self._every or (self._best_only and not self._is_better(logs)):
            return
        try:
            path = self._path.format(epoch=epoch, **logs)
        except (KeyError, IndexError) as error:
            raise UnknownNameError("number in the path", str(error).strip("'"), ["epoch", *logs], self._path) from None
        except (ValueError, TypeError, AttributeError) as error:
            raise ArgumentError(f"{shown(self._path)} cannot be filled in: {error}") from None
        (self.model.save_weights if self._weights_only else self.model.save_state)(path, format=self._format)

    def on_train_end(self) -> None:
        """Warn if there was no best epoch to save."""
        if self._best_only:
            self._warn_if_none_was_finite("nothing was saved")


class CSVLogger(Callback):
    """Write a line for each epoch to a file of comma-separated values.

    Args:
        path: the file.
        append: whether to go on with a file that is there, whose columns have to be the same.
    """

    def __init__(self, path: str | Path, *, append: bool = False) -> None:
        self._path = as_path(path)
        self._append = append
        self._columns: list[str] | None = None

    def on_train_begin(self) -> None:
        """See that the file can be written."""
        self._columns = None
        with self._refusals():
            if self._append and self._path.exists() and self._path.stat().st_size:
                with self._path.open(newline="") as file:
                    self._columns = next(csv.reader(file))
            else:
                self._path.write_text("")

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Write the line."""
        row = {"epoch": epoch, **logs}
        if self._columns is not None and set(row) != set(self._columns):
            raise ArgumentError(
                f"{self._path} has the columns {shown(self._columns)}, and the logs {shown(list(row))}: "
                "give another path"
            )
        with self._refusals(), self._path.open("a", newline="") as file:
            if self._columns is None:
                self._columns = list(row)
                csv.writer(file).writerow(self._columns)
            csv.writer(file).writerow([row[name] for name in self._columns])

    @contextmanager
    def _refusals(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise writing_error(self._path, error) from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise ArgumentError(f"{self._path} is not a file of comma-separated values: give another path") from error


def as_callbacks(callbacks: Any) -> list[Callback]:
    """Callbacks of what `fit` was given: one or several, each a `Callback` or any function of epoch and logs.

    Raises:
        OperandError: for what cannot be called; a `TypeError`.
    """
    given: Iterable[Any] = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
    made: list[Callback] = []
    for each in given:
        if isinstance(each, type) or not (isinstance(each, Callback) or callable(each)):
            raise OperandError(f"a callback is a Callback or a function of epoch and logs, not {shown(each)}")
        made.append(each if isinstance(each, Callback) else LambdaCallback(each))
    return made
