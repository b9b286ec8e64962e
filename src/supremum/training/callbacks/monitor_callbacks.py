"""Callbacks that look for the best epoch: one stops training, one saves the model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from supremum.argument_checks import chosen, flag, real_number, real_within, text, whole_number
from supremum.atomic_files import as_path
from supremum.errors import ArgumentError, UnknownNameError, listed, shown
from supremum.mixed_precision import all_finite
from supremum.nn import load_variables, split_variables
from supremum.nn.functional import MOST, positive_int
from supremum.training.callbacks.callback import Callback
from supremum.training.checkpoints import check_savable, checkpoint_format
from supremum.training.warnings import TrainingWarning
from supremum.user_frame import warn_user

_HIGHER_IS_BETTER = ("acc", "similarity", "precision", "recall", "auc")


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
        higher_is_better = any(part in text("monitor", monitor) for part in _HIGHER_IS_BETTER)
        self.monitor = monitor
        self._sign = -1 if mode == "max" or (mode == "auto" and higher_is_better) else 1
        self._min_delta = min_delta
        self.reset_best()

    def reset_best(self) -> None:
        """Forget the best value."""
        self.best: float = math.inf * self._sign
        self.epochs_seen: int = 0

    def is_better(self, logs: Mapping[str, float]) -> bool:
        """Compare the number of an epoch with the best one, and keep it if it is better.

        Args:
            logs: the loss and the metrics of the epoch.
        """
        if self.monitor not in logs:
            raise UnknownNameError("number to monitor", self.monitor, logs, type(self).__name__)
        self.epochs_seen += 1
        value = logs[self.monitor]
        if not math.isfinite(value) or not self.improves(value, self.best):
            return False
        self.best = value
        return True

    def improves(self, value: float, reference: float) -> bool:
        """Whether a number is better than another by more than `min_delta`."""
        return self._sign * value < self._sign * reference - self._min_delta

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}(monitor={self.monitor!r})"


class EarlyStopping(MonitorCallback):
    """Stop when a number has not improved for some epochs. An inf or NaN never counts as an improvement.

    Args:
        monitor: the number's name in the logs.
        patience: stop after this many epochs in a row without improvement, as in Keras; 0 means 1, and training never
            stops after the first epoch.
        min_delta: the amount that an improvement must exceed.
        mode: `"min"` or `"max"`, whether lower or higher is better; `"auto"` decides by the name.
        baseline: a number to improve on: an epoch that is the best so far, but not better than this, does not start the
            patience anew. None for no such number.
        restore_best_weights: whether to restore the weights of the best epoch, even if it is not better than
            `baseline`. If the number was inf or NaN in every epoch, the model keeps the weights of the last epoch, with
            a warning.
        start_from_epoch: the number of the first epoch that counts; nothing is compared, kept or stopped before it.

    Attributes:
        stopped_epoch: the epoch after which training was stopped; None if it was not.

    >>> import numpy as np
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    >>> stopping = training.EarlyStopping(  # no epoch improves by that much
    ...     "loss", patience=2, min_delta=1e9
    ... )
    >>> _ = model.fit(x, y, epochs=9, callbacks=stopping, verbose=0)
    >>> stopping.stopped_epoch
    2
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        *,
        patience: int = 0,
        min_delta: float = 0.0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self._patience = whole_number("patience", patience, 0, MOST)
        self._baseline = None if baseline is None else real_number("baseline", baseline)
        self._restores = restore_best_weights
        self._start = whole_number("start_from_epoch", start_from_epoch, 0, MOST)
        self._weights: dict[str, Any] | None = None
        self._waited = 0
        self.stopped_epoch: int | None = None

    def on_train_begin(self) -> None:
        """Reset the results of an earlier training."""
        self.reset_best()
        self._waited, self._weights, self.stopped_epoch = 0, None, None

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Compare the number with the best one so far, and stop if patience has run out."""
        if epoch < self._start:
            return
        self._waited += 1
        if self.is_better(logs):
            if self._baseline is None or self.improves(self.best, self._baseline):
                self._waited = 0
            if self._restores:
                trainable, other = split_variables(self.model)
                self._weights = trainable | other
            return
        if self._waited >= self._patience and self.epochs_seen > 1:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self) -> None:
        """Restore the best weights, if requested."""
        if self._weights is not None:
            load_variables(self.model, self._weights)
        elif self._restores:
            self.warn_if_never_finite("the model has the weights of the last epoch")


class ModelCheckpoint(MonitorCallback):
    """Save the model after epochs.

    Weights that are inf or NaN never replace an existing checkpoint, unless `allow_nonfinite` says so: the checkpoint
    stays, and a warning names the weights. Files with `{epoch}` in their names are new, and are written.

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
        allow_nonfinite: whether weights that are inf or NaN may replace an existing checkpoint.

    >>> import tempfile
    >>> import numpy as np
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    >>> folder = Path(tempfile.mkdtemp())
    >>> saving = training.ModelCheckpoint(folder / "epoch-{epoch}.safetensors")
    >>> _ = model.fit(x, y, epochs=2, callbacks=saving, verbose=0)
    >>> sorted(path.name for path in folder.iterdir())
    ['epoch-0.safetensors', 'epoch-1.safetensors']
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
        allow_nonfinite: bool = False,
    ) -> None:
        super().__init__(monitor, mode, 0.0)
        self._format = checkpoint_format(format)
        self._path = str(as_path(path))
        self._best_only = save_best_only
        self._weights_only = save_weights_only
        self._every = positive_int("every", every)
        self._allows_nonfinite = flag("allow_nonfinite", allow_nonfinite)
        self._has_warned = False

    def on_train_begin(self) -> None:
        """Check that the path can be written."""
        self._has_warned = False
        check_savable(Path(self._path), self._format)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Save the model if this epoch is due, and the best so far if required."""
        best = self.best
        if (epoch + 1) % self._every or (self._best_only and not self.is_better(logs)):
            return
        try:
            path = self._path.format(epoch=epoch, **logs)
        except (KeyError, IndexError) as error:
            raise UnknownNameError("number in the path", str(error).strip("'"), ["epoch", *logs], self._path) from None
        except (ValueError, TypeError, AttributeError) as error:
            raise ArgumentError(f"{shown(self._path)} cannot be filled in: {error}") from None
        if not self._allows_nonfinite and self._would_spoil(path, epoch):
            self.best = best
            return
        (self.model.save_weights if self._weights_only else self.model.save_state)(path, format=self._format)

    def _would_spoil(self, path: str, epoch: int) -> bool:
        """Whether weights that are not finite would replace a checkpoint; warn of the first ones."""
        trainable, other = split_variables(self.model)
        weights = trainable | other
        if _all_finite(weights) or not _exists(as_path(path)):
            return False
        if not self._has_warned:
            self._has_warned = True
            bad = [name for name, value in weights.items() if not _all_finite([value])]
            warn_user(
                f"ModelCheckpoint: {listed(bad)} {'has' if len(bad) == 1 else 'have'} inf or NaN after epoch {epoch} "
                f"(counted from 0), so {shown(path)} stays as it was; pass allow_nonfinite=True to replace it, or "
                "restore it with " + ("model.load_weights(path)" if self._weights_only else "model.load_state(path)"),
                TrainingWarning,
            )
        return True

    def on_train_end(self) -> None:
        """Warn if there was no best epoch to save."""
        if self._best_only:
            self.warn_if_never_finite("nothing was saved")


_jitted = jax.jit(all_finite)


def _all_finite(weights: Any) -> bool:
    return bool(_jitted(weights))


def _exists(path: Path) -> bool:
    """Whether there is a checkpoint, as the first process sees it, so that all processes save or none does."""
    if jax.process_count() == 1:
        return path.exists()
    return bool(multihost_utils.broadcast_one_to_all(np.asarray(path.exists())))
