"""The history of a training run: losses, metrics and times in memory, as a plot, and in a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from supremum.atomic_files import as_path, writing_error
from supremum.errors import ArgumentError, printable, shown
from supremum.extras import require
from supremum.numerics import save_figure
from supremum.training.callbacks.callback import Callback

_NOT_METRICS = ("loss_scale", "skipped_steps")


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

    >>> import numpy as np
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    >>> history = model.fit(x, y, epochs=3, batch_size=4, verbose=0)
    >>> history.epoch, list(history.history), len(history.loss), history.skipped_steps
    ([0, 1, 2], ['loss'], 6, 0)
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

    def add(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Add the results of an epoch.

        Args:
            epoch: its number.
            logs: numbers by name.
        """
        self.epoch.append(epoch)
        self.add_to_last(logs)

    def add_to_last(self, logs: Mapping[str, float]) -> None:
        """Add numbers to the last epoch, under names that it does not have yet.

        Args:
            logs: numbers by name.
        """
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
            MissingPackageError: without matplotlib; `pip install 'supremum[plot]'` installs it.
        """
        if not self.epoch:
            raise ArgumentError("there is nothing to plot, because no epoch was trained")
        figure = _draw_history(self)
        if path is not None:
            save_figure(figure, as_path(path))
        return figure


class CSVLogger(Callback):
    """Write one line per epoch to a CSV file.

    Args:
        path: the file.
        append: whether to append to an existing file, which must have the same columns.

    >>> import tempfile
    >>> import numpy as np
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    >>> path = Path(tempfile.mkdtemp()) / "history.csv"
    >>> _ = model.fit(x, y, epochs=2, callbacks=training.CSVLogger(path), verbose=0)
    >>> lines = path.read_text().splitlines()
    >>> lines[0], len(lines)
    ('epoch,loss', 3)
    """

    def __init__(self, path: str | Path, *, append: bool = False) -> None:
        self._path = as_path(path)
        self._append = append
        self._columns: list[str] | None = None

    def on_train_begin(self) -> None:
        """Check that the file can be written."""
        self._columns = None
        with self._clear_errors():
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
                f"{self._path} has the columns {shown(self._columns)}, but the logs have {shown(list(row))}; "
                "use another path"
            )
        with self._clear_errors(), self._path.open("a", newline="") as file:
            if self._columns is None:
                self._columns = list(row)
                csv.writer(file).writerow(self._columns)
            csv.writer(file).writerow([row[name] for name in self._columns])

    @contextmanager
    def _clear_errors(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise writing_error(self._path, error) from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise ArgumentError(f"{self._path} is not a CSV file; use another path") from error

    def __repr__(self) -> str:
        return f"CSVLogger({str(self._path)!r}, append={self._append})"


def _draw_history(history: History) -> Any:
    """Plot losses and metrics over epochs, one panel each, validation dashed, and the loss scale over steps."""
    require("A plot", "matplotlib")
    from matplotlib.figure import Figure  # matplotlib is an optional dependency

    names = [name for name in history.history if not name.startswith("val_") and name not in _NOT_METRICS]
    has_scale = "loss_scale" in history.history
    count = len(names) + has_scale
    figure = Figure(figsize=(4.2 * count, 3.2), layout="constrained")
    panels: list[Any] = list(figure.subplots(1, count, squeeze=False)[0])
    for name, panel in zip(names, panels, strict=False):
        _draw_number(panel, name, history)
    if has_scale:
        _draw_scale(panels[-1], history.loss_scale, history.skipped)
    return figure


def _draw_number(panel: Any, name: str, history: History) -> None:
    from matplotlib.ticker import MaxNLocator

    epochs = [number + 1 for number in history.epoch]
    marker = "o" if len(epochs) < 20 else ""
    panel.plot(epochs, history.history[name], marker=marker, markersize=4, label="training")
    if f"val_{name}" in history.history:
        panel.plot(epochs, history.history[f"val_{name}"], "--", marker=marker, markersize=4, label="validation")
        panel.legend(frameon=False)
    panel.set(title=printable(name.replace("_", " ")), xlabel="epoch")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.grid(alpha=0.3)


def _draw_scale(panel: Any, loss_scale: Sequence[float], skipped: Sequence[bool]) -> None:
    steps = range(1, len(loss_scale) + 1)
    panel.step(steps, loss_scale, where="post")
    marked = [step for step, was in zip(steps, skipped, strict=True) if was]
    if marked:
        panel.plot(marked, [loss_scale[step - 1] for step in marked], "x", color="tab:red", label="skipped")
        panel.legend(frameon=False)
    panel.set_yscale("log", base=2)
    panel.set(title="loss scale", xlabel="step")
    panel.grid(alpha=0.3)
