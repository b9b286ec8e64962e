"""Progress bars and lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from supremum import nn
from supremum.errors import UnknownNameError, printable
from supremum.training.callbacks.callback import Callback, CallbackList, as_callbacks

_SECONDS_BETWEEN = 0.25
"""How long numbers stay on the screen, in seconds; reading them waits for the device."""


class ProgressBar(Callback):
    """A line for each epoch with loss, metrics, loss scale and skipped steps, and a bar while it runs.

    Args:
        epochs: the total number of epochs.
        steps: batches in an epoch; None if unknown.
        bar: whether to draw bars; each is replaced by its line at the end.
        what: the title of the bar: `"epoch"`, which is numbered, or another word.
    """

    def __init__(self, epochs: int, steps: int | None, *, bar: bool, what: str) -> None:
        self._what, self._epochs, self._steps = what, epochs, steps
        self._console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
        self._bar: Progress | None = None
        self._is_bar = bar
        self._shown = self._start = 0.0
        self._room = 0

    def on_epoch_begin(self, epoch: int) -> None:
        """Draw the bar of the epoch."""
        self._start = time.perf_counter()
        if not self._is_bar:
            return
        title, counts = self._title(epoch), 2 * len(str(self._steps or "")) + 3
        # A narrow terminal truncates only the numbers: the bar takes 12 columns, the time 5, and the gaps 4.
        self._room = max(self._console.width - len(title) - counts - 12 - 5 - 4, 0)
        self._bar = Progress(
            TextColumn(title),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[numbers]}"),
            console=self._console,
            transient=True,
        )
        self._bar.start()
        self._bar.add_task("", total=self._steps, numbers="")

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        """Advance the bar."""
        now = time.perf_counter()
        if self._bar is None or now - self._shown < _SECONDS_BETWEEN:
            return
        self._shown = now
        self._bar.update(self._bar.task_ids[0], completed=batch + 1, numbers=log_text(logs)[: self._room], refresh=True)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Show the results of the epoch."""
        self.on_train_end()
        seconds = f"{time.perf_counter() - self._start:.1f} s"
        self._console.print("  ".join([self._title(epoch), seconds, log_text(logs)]).rstrip())

    def on_train_end(self) -> None:
        """Remove the bar from the terminal."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _title(self, epoch: int) -> str:
        width = len(str(self._epochs))
        return f"epoch {epoch + 1:{width}}/{self._epochs}" if self._what == "epoch" else self._what


def log_text(logs: Mapping[str, float]) -> str:
    """Format numbers with their names, in one line.

    >>> log_text(
    ...     {
    ...         "loss": 0.123456,
    ...         "val_accuracy": 0.97,
    ...         "loss_scale": 32768.0,
    ...         "skipped_steps": 2,
    ...     }
    ... )
    'loss 0.1235  val_accuracy 0.9700  loss_scale 32768  skipped_steps 2'
    """
    return "  ".join(f"{printable(name)} {_number(value)}" for name, value in logs.items())


def _number(value: float) -> str:
    if abs(value) < 1e15 and value == int(value):
        return f"{value:.0f}"
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e4 else f"{value:.3e}"


class PassProgressBar(ProgressBar):
    """A progress bar, then a line, for one pass over batches: an evaluation or a prediction."""

    def on_test_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:  # noqa: ARG002 (reading logs fetches them)
        """Advance the bar."""
        self.on_train_batch_end(batch, {})

    def on_predict_batch_end(self, batch: int) -> None:
        """Advance the bar."""
        self.on_train_batch_end(batch, {})

    def on_test_end(self, logs: Mapping[str, float]) -> None:
        """Show the results."""
        self.on_epoch_end(0, logs)

    def on_predict_end(self) -> None:
        """Show the elapsed time."""
        self.on_epoch_end(0, {})


def progress_of(verbose: object, epochs: int, steps: int | None, what: str = "epoch") -> list[ProgressBar]:
    """Create the progress callbacks for `verbose`: `"auto"`, 0 for nothing, 1 for bars, 2 for one line per epoch.

    With several processes, only the first prints.

    Args:
        verbose: the value to check.
        epochs: the total number of epochs.
        steps: batches in an epoch; None if unknown.
        what: `"epoch"`, or the name of an operation that is one pass over batches.

    Raises:
        UnknownNameError: for anything else; a `ValueError`.
    """
    if not isinstance(verbose, (str, int)) or verbose not in ("auto", 0, 1, 2):
        raise UnknownNameError("verbose", verbose, ["auto", "0", "1", "2"])
    if verbose == 0 or jax.process_index() > 0:
        return []
    is_bar = verbose == 1 or (verbose == "auto" and Console(file=sys.stdout).is_terminal)
    kind = ProgressBar if what == "epoch" else PassProgressBar
    return [kind(epochs, steps, bar=is_bar, what=what)]


@contextmanager
def pass_progress(
    what: str,
    model: nn.Network,
    verbose: object,
    callbacks: Callback | Callable[..., Any] | Sequence[Any],
    steps: int | None,
) -> Generator[CallbackList]:
    """Show the progress of one pass over batches while a block runs.

    Args:
        what: the name of the operation.
        model: the model.
        verbose: as for `progress_of`.
        callbacks: as for `Model.fit`.
        steps: how many batches there are; None if unknown.

    Yields:
        The callbacks of the pass, which have the model.
    """
    bars = progress_of(verbose, 1, steps, what)
    try:
        for bar in bars:
            bar.on_epoch_begin(0)
        called = CallbackList([*as_callbacks(callbacks), *bars])
        called.call("set_model", model)
        yield called
    finally:
        for bar in bars:
            bar.on_train_end()
