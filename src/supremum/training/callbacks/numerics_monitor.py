"""A callback that measures what number formats would do to the gradients of a training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax

from supremum.argument_checks import function
from supremum.nn.functional import positive_int
from supremum.numerics import FORMATS, Measured, Measurements, NumericsHistory, as_formats
from supremum.training.callbacks.callback import Callback


class NumericsMonitor(Callback):
    """Measure, every so many steps, what number formats would do to the gradients of each layer.

    `history` has for each measured step and each layer:

    * `"gradients"`: the share of the gradients of its variables that is zero, that would flush to zero in each format,
      and that would overflow. They are the gradients as the backward pass holds them: of the scaled loss, averaged over
      devices. Under `"mixed_float16"`, values that float16 has already lost are among the zeros.
    * `"unscaled_gradients"`: the same of the gradients that the optimizer gets, with loss scaling only. Their shares
      are what would be lost without it.
    * the largest magnitudes of both, of the `"weights"`, and of the `"activations"`, which are the layer's outputs.

    Counts are exact: they come from the integer bits of the values. A measured step runs its forward and backward pass
    a second time, in a separate program, from the same values, random numbers and loss scale. Training therefore has
    the same bits with and without the monitor, steps that are not measured cost nothing, and with `every=100` the
    monitor costs about 1 to 2 % of the time. While it measures, it needs memory for the gradients, and with loss
    scaling for twice the gradients.

    With several steps in one dispatch, the first step of the dispatch is measured if any of its steps is due. With
    gradient accumulation, the gradients are those of one batch.

    Args:
        every: how many steps there are between measurements; the first step is measured.
        formats: the floating-point formats to answer for.
        on_log: a function of a dict of numbers for any logger, such as `wandb.log`; see `NumericsRecord.numbers`. It
            has the loss scale and the number of skipped steps too. It is called for each measurement: at the next one,
            or at the end of the epoch. With several processes, only the first calls it.

    Raises:
        ArgumentError: for `every` below 1; a `ValueError`.
        OperandError: for a format that is not real floating; a `TypeError`.

    >>> import numpy as np
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(4), nn.ReLU(), nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((64, 3), "float32"), np.full((64, 1), 1e-6, "float32")
    >>> monitor = training.NumericsMonitor(every=4, formats=["float16"])
    >>> _ = model.fit(x, y, batch_size=8, callbacks=monitor, verbose=0)
    >>> monitor.history.steps, list(monitor.history.records[0].values)
    ([0, 4], ['activations', 'weights', 'gradients'])
    >>> list(monitor.history.numbers("gradients", "float16/flushed"))
    ['dense', 'dense_1']
    """

    def __init__(
        self,
        every: int = 100,
        formats: Iterable[Any] = FORMATS,
        *,
        on_log: Callable[[dict[str, float]], Any] | None = None,
    ) -> None:
        self._every = positive_int("every", every)
        self._formats = as_formats(formats)
        self._on_log = None if on_log is None else function("on_log", on_log, "print")
        self._measurements = Measurements(None)

    @property
    def formats(self) -> tuple[Any, ...]:
        """The formats to answer for, as rows of `supremum.formats`."""
        return self._formats

    @property
    def history(self) -> NumericsHistory:
        """The measurements of the last training; reading it while the model trains waits for the last one."""
        self._measurements.read_all()
        return self._measurements.history

    def is_due(self, step: int, count: int) -> bool:
        """Whether a dispatch has a step to measure.

        Args:
            step: the number of its first step.
            count: how many steps it has.
        """
        return (step + count - 1) // self._every > (step - 1) // self._every

    def add(self, measured: Measured) -> None:
        """Add a measurement, which is read later.

        Args:
            measured: the measurement.
        """
        self._measurements.add(measured)

    def on_train_begin(self) -> None:
        """Forget an earlier training."""
        self._measurements = Measurements(self._on_log if jax.process_index() == 0 else None)

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:  # noqa: ARG002
        """Read the measurements of the epoch."""
        self._measurements.read_all()

    def on_train_end(self) -> None:
        """Read the last measurements."""
        self._measurements.read_all()

    def __repr__(self) -> str:
        return f"NumericsMonitor(every={self._every}, formats={[row.name for row in self._formats]})"
