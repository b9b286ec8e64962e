"""The history of a training run: losses, metrics and times."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from supremum.atomic_files import as_path, whole_file, writing_error
from supremum.errors import ArgumentError, UnknownNameError


@dataclass
class History:
    """The history of a training run, by epoch and by step.

    Attributes:
        epoch: the number of each epoch, from 0.
        history: the values of each epoch by name: `"loss"`, the metrics, and those of validation as `"val_loss"`, ...;
            with loss scaling also `"loss_scale"`, after the epoch, and `"skipped_steps"`, how many the epoch skipped.
        loss: the loss of each step, unscaled.
        loss_scale: the scale of each step; 1 without loss scaling.
        skipped: whether each step was skipped.
        seconds: the time of each epoch in seconds; the first includes compilation.
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
        """The median time of an epoch in seconds, without the first epoch if there are several."""
        return median(self.seconds[1:] or self.seconds)

    def add(self, epoch: int, logs: dict[str, float]) -> None:
        """Add the results of an epoch.

        Args:
            epoch: its number.
            logs: numbers by name.
        """
        self.epoch.append(epoch)
        for name, value in logs.items():
            # A new name has no values in earlier epochs.
            self.history.setdefault(name, [float("nan")] * (len(self.epoch) - 1)).append(value)

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot losses and metrics over epochs, and the loss scale over steps, with skipped steps marked.

        Args:
            path: where to save the plot. Its extension, such as `.svg`, selects the format; PNG without one. None to
                not save it.

        Returns:
            The `matplotlib.figure.Figure`.

        Raises:
            ArgumentError: if no epoch was trained; a `ValueError`.
            UnknownNameError: for a format that matplotlib does not write.
            FileError: if the file cannot be written; an `OSError`.
            ImportError: without matplotlib; `pip install 'supremum[plot]'` installs it.
        """
        if not self.epoch:
            raise ArgumentError("there is nothing to plot, because no epoch was trained")
        from supremum.training.plots import history_figure  # matplotlib is an optional dependency

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
