"""Training over epochs, with its history."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import jax
import numpy as np

from supremum.mixed_precision import LossScale
from supremum.nn import Layer, functional_call, split_variables
from supremum.optimizers import Optimizer
from supremum.training.step import LossFunction, StepReport, init_state, train_step


@dataclass
class History:
    """What happened, step by step.

    Args:
        loss: the loss of each step, unscaled.
        loss_scale: the scale of each step; 1 without loss scaling.
        skipped: whether each step was skipped.
        seconds: the time of each epoch; the first one compiles.
        final_loss_scale: the scale after the last step; None without loss scaling.
    """

    loss: list[float] = field(default_factory=list[float])
    loss_scale: list[float] = field(default_factory=list[float])
    skipped: list[bool] = field(default_factory=list[bool])
    seconds: list[float] = field(default_factory=list[float])
    final_loss_scale: float | None = None

    @property
    def skipped_steps(self) -> int:
        """How many steps were skipped."""
        return sum(self.skipped)

    @property
    def seconds_per_epoch(self) -> float:
        """The median time of an epoch, compilation left out where there is more than one."""
        return median(self.seconds[1:] or self.seconds)


@partial(jax.jit, static_argnames="batch_size")
def _shuffled_batches(key: jax.Array, x: jax.Array, y: jax.Array, batch_size: int) -> list[tuple[jax.Array, jax.Array]]:
    count = len(x) // batch_size
    order = jax.random.permutation(key, len(x))[: count * batch_size].reshape(count, batch_size)
    return [(x[order[number]], y[order[number]]) for number in range(count)]


def fit(
    model: Layer,
    optimizer: Optimizer,
    loss: LossFunction,
    x: Any,
    y: Any,
    *,
    batch_size: int = 64,
    epochs: int = 1,
    seed: int = 0,
    loss_scale: LossScale | None = None,
    on_epoch: Callable[[int, History], None] | None = None,
) -> History:
    """Train a built model in place.

    Each step is one call of a jitted function, on batches that are on the device already; the losses are fetched once
    an epoch.

    Args:
        model: the model; its variables hold the trained values afterwards.
        optimizer: what changes them.
        loss: a function of labels and outputs.
        x: inputs, shape (examples, ...).
        y: labels, shape (examples, ...).
        batch_size: examples in a step; the last ones of an epoch that fill no batch wait for another epoch's shuffle.
        epochs: how often to go through the data.
        seed: what the shuffling starts from.
        loss_scale: the settings of the loss scale; None for none.
        on_epoch: called after every epoch with its number, from 1, and the history so far.

    Returns:
        What happened.

    Raises:
        ValueError: if there are fewer examples than a batch has.
    """
    if len(x) != len(y) or not 1 <= batch_size <= len(x):
        raise ValueError(f"batch_size {batch_size} does not fit {len(x)} inputs with {len(y)} labels")
    step = jax.jit(train_step(model, loss, optimizer, loss_scale), donate_argnums=0)
    state = init_state(model, optimizer, loss_scale)
    x, y = jax.device_put((x, y))
    history = History()
    for number, key in enumerate(jax.random.split(jax.random.key(seed), epochs), start=1):
        start = time.perf_counter()
        reports: list[StepReport] = []
        for batch in _shuffled_batches(key, x, y, batch_size):
            state, report = step(state, *batch)
            reports.append(report)
        _record(history, jax.device_get(reports))
        history.seconds.append(time.perf_counter() - start)
        if on_epoch is not None:
            on_epoch(number, history)
    if state.loss_scale is not None:
        history.final_loss_scale = float(state.loss_scale.loss_scale)
    for path, variable in model.variables.items():
        variable.assign((state.trainable | state.other)[path])
    return history


def _record(history: History, reports: list[StepReport]) -> None:
    history.loss += [float(report.loss) for report in reports]
    history.loss_scale += [float(report.loss_scale) for report in reports]
    history.skipped += [bool(report.skipped) for report in reports]


def accuracy(model: Layer, x: Any, y: Any) -> float:
    """The share of examples whose largest output is at the label.

    Args:
        model: a built classifier.
        x: inputs, shape (examples, ...).
        y: integer labels, shape (examples,).
    """
    trainable, other = split_variables(model)

    def outputs_of(variables: dict[str, jax.Array], x: Any) -> Any:
        return functional_call(model, variables, x)[0]

    outputs = jax.jit(outputs_of)(trainable | other, x)
    return float(np.mean(np.argmax(np.asarray(outputs, np.float32), axis=-1) == np.asarray(y)))
