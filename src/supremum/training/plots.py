"""Plots of a training history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

_NOT_METRICS = ("loss_scale", "skipped_steps")


def history_figure(
    epochs: Sequence[int],
    numbers: Mapping[str, Sequence[float]],
    loss_scale: Sequence[float],
    skipped: Sequence[bool],
) -> Figure:
    """Plot losses and metrics over epochs, one panel each, validation dashed, and the loss scale over steps.

    Args:
        epochs: the number of each epoch, from 0.
        numbers: the values of each epoch by name, as in `History.history`.
        loss_scale: the scale of each step.
        skipped: whether each step was skipped.
    """
    names = [name for name in numbers if not name.startswith("val_") and name not in _NOT_METRICS]
    has_scale = "loss_scale" in numbers
    count = len(names) + has_scale
    figure = Figure(figsize=(4.2 * count, 3.2), layout="constrained")
    panels: list[Any] = list(figure.subplots(1, count, squeeze=False)[0])
    counted = [number + 1 for number in epochs]
    for name, panel in zip(names, panels, strict=False):
        _draw_number(panel, name, counted, numbers)
    if has_scale:
        _draw_scale(panels[-1], loss_scale, skipped)
    return figure


def _draw_number(panel: Any, name: str, epochs: Sequence[int], numbers: Mapping[str, Sequence[float]]) -> None:
    marker = "o" if len(epochs) < 20 else ""
    panel.plot(epochs, numbers[name], marker=marker, markersize=4, label="training")
    if f"val_{name}" in numbers:
        panel.plot(epochs, numbers[f"val_{name}"], "--", marker=marker, markersize=4, label="validation")
        panel.legend(frameon=False)
    panel.set(title=name.replace("_", " "), xlabel="epoch")
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
