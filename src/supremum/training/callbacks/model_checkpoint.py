"""A callback that saves the model after epochs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from supremum.atomic_files import as_path, check_writable
from supremum.errors import ArgumentError, UnknownNameError, shown
from supremum.nn.functional import positive_int
from supremum.training.callbacks.monitor_callback import MonitorCallback
from supremum.training.checkpoints import FOLDER, check_folder_writable, checked_format


class ModelCheckpoint(MonitorCallback):
    """Save the model after epochs.

    Args:
        path: a file, or an orbax folder; `{epoch}` and log names in braces are filled in, as in
            `"weights-{epoch:02d}-{val_loss:.3f}"`.
        monitor: the name of the number that decides which epoch is best.
        save_best_only: whether to save only if the number is better than in all earlier epochs. An inf or NaN is never
            better; if the number was inf or NaN in every epoch, nothing is saved, with a warning.
        save_weights_only: whether to save only the weights, without the optimizer, the loss scale and the random keys
            that resuming the training needs.
        mode: `"min"` or `"max"`, whether lower or higher is better; `"auto"` decides by the name.
        every: how many epochs there are between saves; 1 saves after each.
        format: `"safetensors"` for files, the default, or `"orbax"` for folders, which may hold sharded arrays.
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
        """Check that the path can be written."""
        super().on_train_begin()
        check = check_folder_writable if checked_format(self._format) == FOLDER else check_writable
        check(Path(self._path))

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Save the model if this epoch is due, and the best so far if required."""
        if (epoch + 1) % self._every or (self._best_only and not self.is_better(logs)):
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
            self.warn_if_never_finite("nothing was saved")
