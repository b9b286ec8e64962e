"""Pictures of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from supremum.training.callbacks.history import History

_OWN_PANELS = ("loss_scale", "skipped_steps")


def history_figure(history: History) -> Figure:
    """Losses and metrics over epochs, one panel each, validation dashed; the loss scale over steps.

    Args:
        history: what happened.
    """
    names = [name for name in history.history if not name.startswith("val_") and name not in _OWN_PANELS]
    has_scale = "loss_scale" in history.history
    count = len(names) + has_scale
    figure = Figure(figsize=(4.2 * count, 3.2), layout="constrained")
    panels: list[Any] = list(figure.subplots(1, count, squeeze=False)[0])
    epochs = [number + 1 for number in history.epoch]
    for name, panel in zip(names, panels, strict=False):
        _draw_number(panel, name, epochs, history)
    if has_scale:
        _draw_scale(panels[-1], history)
    return figure


def _draw_number(panel: Any, name: str, epochs: list[int], history: History) -> None:
    marker = "o" if len(epochs) < 20 else ""
    panel.plot(epochs, history.history[name], marker=marker, markersize=4, label="training")
    if f"val_{name}" in history.history:
        panel.plot(epochs, history.history[f"val_{name}"], "--", marker=marker, markersize=4, label="validation")
        panel.legend(frameon=False)
    panel.set(title=name.replace("_", " "), xlabel="epoch")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.grid(alpha=0.3)


def _draw_scale(panel: Any, history: History) -> None:
    steps = range(1, len(history.loss_scale) + 1)
    panel.step(steps, history.loss_scale, where="post")
    skipped = [step for step, was in zip(steps, history.skipped, strict=True) if was]
    if skipped:
        panel.plot(skipped, [history.loss_scale[step - 1] for step in skipped], "x", color="tab:red", label="skipped")
        panel.legend(frameon=False)
    panel.set_yscale("log", base=2)
    panel.set(title="loss scale", xlabel="step")
    panel.grid(alpha=0.3)
