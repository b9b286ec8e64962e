"""The history of a training: losses, metrics and times."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from supremum.atomic_files import as_path, whole_file, writing_error
from supremum.errors import ArgumentError, UnknownNameError


@dataclass
class History:
    """What happened, epoch by epoch and step by step.

    Attributes:
        epoch: the number of each epoch, from 0.
        history: by name what each epoch came to: `"loss"`, the metrics, the same of validation as `"val_loss"`, ...;
            with a loss scale `"loss_scale"`, as it was after the epoch, and `"skipped_steps"`, those of the epoch.
        loss: the loss of each step, unscaled.
        loss_scale: the scale of each step; 1 without loss scaling.
        skipped: whether each step was skipped.
        seconds: the time of each epoch; the first one compiles.
    """

    epoch: list[int] = field(default_factory=list[int])
    history: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    loss: list[float] = field(default_factory=list[float])
    loss_scale: list[float] = field(default_factory=list[float])
    skipped: list[bool] = field(default_factory=list[bool])
    seconds: list[float] = field(default_factory=list[float])

    @property
    def skipped_steps(self) -> int:
        """How many steps were skipped."""
        return sum(self.skipped)

    @property
    def seconds_per_epoch(self) -> float:
        """The median time of an epoch, that of the first left out where there are more."""
        return median(self.seconds[1:] or self.seconds)

    def add(self, epoch: int, logs: dict[str, float]) -> None:
        """Add what an epoch came to.

        Args:
            epoch: its number.
            logs: numbers by name.
        """
        self.epoch.append(epoch)
        for name, value in logs.items():
            # A name that is new has no values in the epochs before.
            self.history.setdefault(name, [float("nan")] * (len(self.epoch) - 1)).append(value)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw losses and metrics over epochs, and the loss scale, with the steps that were skipped, over steps.

        Args:
            path: where to save the picture, in the format that its name ends in, such as `.svg`; PNG where it ends in
                none. None to save none.

        Returns:
            The `matplotlib.figure.Figure`.

        Raises:
            ArgumentError: if there was no epoch; a `ValueError`.
            UnknownNameError: for a format that matplotlib does not write.
            FileError: where it cannot be written; an `OSError`.
            ImportError: without matplotlib, which `pip install 'supremum[plot]'` brings.
        """
        if not self.epoch:
            raise ArgumentError("there is nothing to plot: no epoch was trained")
        from supremum.training.plots import history_figure  # matplotlib is in an extra of its own

        figure = history_figure(self.epoch, self.history, self.loss_scale, self.skipped)
        if path is not None:
            _save(figure, as_path(path))
        return figure


def _save(figure: Any, path: Path) -> None:
    formats = figure.canvas.get_supported_filetypes()
    ending = path.suffix.removeprefix(".").lower() or "png"
    if ending not in formats:
        raise UnknownNameError("format of a picture", ending, formats)
    try:
        with whole_file(path) as temporary:
            figure.savefig(temporary, format=ending)
    except OSError as error:
        raise writing_error(path, error) from error
