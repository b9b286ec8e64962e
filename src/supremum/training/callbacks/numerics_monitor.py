"""A callback that measures what number formats would do to the gradients of a training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import jax

from supremum.argument_checks import chosen, function, instance, whole_number
from supremum.errors import listed, shown
from supremum.formats import Format
from supremum.mixed_precision import all_finite
from supremum.nn import split_variables
from supremum.nn.functional import MOST, positive_int
from supremum.numerics import FORMATS, Measured, Measurements, NonfiniteOrigins, NumericsHistory, as_formats
from supremum.optimizers import LossScaleOptimizer, Optimizer, optimizers_within
from supremum.training.callbacks.callback import Callback
from supremum.training.warnings import TrainingWarning
from supremum.typing import DTypeLike
from supremum.user_frame import warn_user


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
        on_nonfinite: `"explain"` to find where the first NaN or infinity was made, if training ends with weights or a
            loss that are not finite, or with skipped steps at the floor of the loss scale. A warning then names its
            line, its layer, and whether it belongs to the forward or the backward pass; `origins` has all of them. The
            monitor keeps a copy of the last finite state: of all weights, the optimizer's state and one batch. That is
            as much memory again, and each step takes the time to copy it. Steps are sent one by one.

    Attributes:
        formats: the formats to answer for, as rows of `supremum.formats`.
        origins: the operations that made NaNs and infinities, a `supremum.numerics.NonfiniteOrigins`; None if nothing
            was to be explained.

    Raises:
        ArgumentError: for `every` below 1, and in `fit` if `on_nonfinite="explain"` and a model compiled with several
            `steps_per_execution` meet; a `ValueError`.
        OperandError: for a format that is not real floating; a `TypeError`.
        UnknownNameError: for another `on_nonfinite`; a `ValueError`.

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
        formats: Iterable[DTypeLike] = FORMATS,
        *,
        on_log: Callable[[dict[str, float]], Any] | None = None,
        on_nonfinite: str = "ignore",
    ) -> None:
        self._every = positive_int("every", every)
        self.formats: tuple[Format, ...] = as_formats(formats)
        self._on_log = None if on_log is None else function("on_log", on_log, "print")
        self._measurements = Measurements(None)
        self.explains: bool = chosen("on_nonfinite", on_nonfinite, ("ignore", "explain")) == "explain"
        self._explain: Callable[[], Any] | None = None
        self.origins: NonfiniteOrigins | None = None

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
        whole_number("step", step, 0, MOST)
        positive_int("count", count)
        return (step + count - 1) // self._every > (step - 1) // self._every

    def add(self, measured: Measured) -> None:
        """Add a measurement, which is read later.

        Args:
            measured: the measurement.
        """
        self._measurements.add(instance("measured", measured, Measured, "a measured step"))

    def explain_with(self, explain: Callable[[], Any]) -> None:
        """Set how to find where the first NaN or infinity was made.

        Args:
            explain: returns a `FirstNonfinite`, or None.
        """
        self._explain = function("explain", explain, "lambda: None")

    def on_train_begin(self) -> None:
        """Forget an earlier training."""
        self.origins = None
        self._measurements = Measurements(self._on_log if jax.process_index() == 0 else None)

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:  # noqa: ARG002
        """Read the measurements of the epoch."""
        self._measurements.read_all()

    def on_train_end(self) -> None:
        """Read the last measurements, and explain values that are not finite."""
        explain, self._explain = self._explain, None  # which holds the copies
        self._measurements.read_all()
        what = _what_is_wrong(self.model) if explain is not None else None
        if what is None or explain is None:
            return
        explanation = explain()
        if explanation is None:
            warn_user(
                f"NumericsMonitor: training ended with {what}, but the last step from finite weights makes no inf or "
                "NaN when it is repeated; look for inf and NaN in x and y",
                TrainingWarning,
            )
            return
        self.origins = explanation.origins
        warn_user(_explanation_text(what, explanation.step, explanation.origins), TrainingWarning)

    def __repr__(self) -> str:
        return f"NumericsMonitor(every={self._every}, formats={[row.name for row in self.formats]})"


def _what_is_wrong(model: Any) -> str | None:
    """What training ended with that is not finite, in words; None if all is well."""
    trainable, other = split_variables(model)
    weights = trainable | other
    if not bool(all_finite(weights)):
        return f"inf or NaN in {listed(path for path, value in weights.items() if not bool(all_finite(value)))}"
    if any(map(_is_stuck, optimizers_within(model.optimizer))):
        return "skipped steps at the floor of the loss scale"
    losses = [] if model.history is None else model.history.loss[-1:]
    return f"a loss of {losses[0]}" if losses and not math.isfinite(losses[0]) else None


def _is_stuck(optimizer: Optimizer) -> bool:
    """Whether an optimizer skips all steps, with its loss scale at the floor."""
    if not isinstance(optimizer, LossScaleOptimizer) or not optimizer.skips:
        return False
    scale, state = optimizer.loss_scale, optimizer.loss_scale.state
    is_at_floor = float(state.loss_scale) <= scale.settings.bounds[0]
    return is_at_floor and int(state.num_skipped_steps) > 0 and int(state.num_good_steps) == 0


def _explanation_text(what: str, step: int, origins: NonfiniteOrigins) -> str:
    origin = next((each for each in origins if each.reached_output), origins[0])
    passes = "backward" if origin.backward else "forward"
    layer = f" of {shown(origin.scope)}" if origin.scope else ""
    value = "a NaN" if origin.kind == "nan" else "an infinity"
    cause = f", {origin.cause}" if origin.cause else ""
    fix = f". To fix it, {origin.fix}" if origin.fix else ""
    return (
        f"NumericsMonitor: training ended with {what}. Step {step} (counted from 0) made the first one: {value} in the "
        f"{passes} pass{layer}, at {origin.where}, {origin.expression or origin.primitive}{cause}{fix}. "
        "monitor.origins has all of them"
    )
