"""Pictures of training runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from supremum.atomic_files import whole_file, writing_error
from supremum.demo.classifier import Report
from supremum.demo.underflow import Underflow

# The colours of Okabe and Ito, which colour-blind readers can distinguish, and different line styles.
_STYLES = (("#0072B2", "-"), ("#E69F00", "--"), ("#009E73", "-."), ("#CC79A7", ":"))
_SKIPPED = "#D55E00"
_SMOOTHING = 15


def draw_training(path: Path, reports: Sequence[Report]) -> None:
    """Draw the losses above the loss scales, by step, and mark skipped steps.

    Args:
        path: the PNG file, which is either complete or absent.
        reports: the runs to show.

    >>> from tempfile import TemporaryDirectory
    >>> from supremum.mixed_precision import Policy
    >>> from supremum.training import History
    >>> history = History([0], {"loss": [0.5]}, [2.3, 0.5], [1.0, 1.0], [False, False], [0.1])
    >>> report = Report(Policy("float32"), 0.97, None, 4096, 0.1, seed=0, history=history)
    >>> with TemporaryDirectory() as folder:
    ...     draw_training(Path(folder, "training.png"), [report])
    ...     Path(folder, "training.png").read_bytes()[1:4]
    b'PNG'
    """
    figure, (losses, scales) = _new_figure()
    _draw_losses(losses, reports)
    for report, (colour, line) in zip(reports, _STYLES, strict=False):
        if report.loss_scale is None:
            continue
        scale = np.asarray(report.history.loss_scale)
        steps = np.arange(1, len(scale) + 1)
        skipped = np.asarray(report.history.skipped)
        scales.step(steps, scale, where="mid", color=colour, linestyle=line, label=report.label)
        label = f"skipped steps: {skipped.sum()}"
        scales.plot(steps[skipped], scale[skipped], "x", color=_SKIPPED, markersize=9, markeredgewidth=2, label=label)
    scales.set(xlabel="step", ylabel="loss scale")
    scales.set_title("Loss scale", loc="left")
    if scales.lines:
        scales.set_yscale("log", base=2)
        scales.legend(frameon=False)
    else:
        scales.text(0.5, 0.5, "no policy shown here scales its loss", ha="center", transform=scales.transAxes)
    _save(figure, path)


def draw_underflow(path: Path, reports: Sequence[Report], underflow: Underflow) -> None:
    """Draw the losses of the three runs, and the share of zero gradient entries for each weight.

    Args:
        path: the PNG file, which is either complete or absent.
        reports: the runs to show.
        underflow: the shares of zeros.

    >>> from tempfile import TemporaryDirectory
    >>> from supremum.demo import Shares
    >>> from supremum.mixed_precision import Policy
    >>> from supremum.training import History
    >>> history = History([0], {"loss": [0.5]}, [2.3, 0.5], [1.0, 1.0], [False, False], [0.1])
    >>> report = Report(Policy("float32"), 0.97, None, 4096, 0.1, seed=0, history=history)
    >>> shares = Shares(float32=0.0, float16=0.75, float16_scaled=0.0)
    >>> with TemporaryDirectory() as folder:
    ...     draw_underflow(Path(folder, "underflow.png"), [report], Underflow(1e-6, {"dense": shares}, {1e-6: shares}))
    ...     Path(folder, "underflow.png").read_bytes()[1:4]
    b'PNG'
    """
    figure, (losses, zeros) = _new_figure()
    _draw_losses(losses, reports, underflow.weight)
    runs = zip(*underflow.weights.values(), strict=True)
    labels = ("float32", "float16, no scaling", "float16, loss scaled")
    for shares, label, (colour, line) in zip(runs, labels, _STYLES, strict=False):
        percent = [100 * share for share in shares]
        zeros.plot(list(underflow.weights), percent, color=colour, linestyle=line, marker="o", label=label)
    zeros.set(xscale="log", xlabel="weight of the loss", ylabel="zero entries (%)")
    zeros.set_title("Gradient entries that are exactly zero, first batch, all layers", loc="left")
    zeros.invert_xaxis()
    zeros.axvline(underflow.weight, color="0.6", linewidth=1)
    zeros.legend(frameon=False)
    _save(figure, path)


def _new_figure() -> Any:
    # Without pyplot there is no global state, and no window for any backend.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    axes: Any = figure.subplots(2, 1, gridspec_kw={"height_ratios": (3, 2)})
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    return figure, axes


def _draw_losses(axis: Any, reports: Sequence[Report], weight: float = 1.0) -> None:
    # Later curves are thinner, so that curves that coincide are all visible.
    for number, (report, (colour, line)) in enumerate(zip(reports, _STYLES, strict=False)):
        loss = np.asarray(report.history.loss) / weight
        accuracy = f"{report.label}: {100 * report.test_accuracy:.1f} % right on the test set"
        axis.plot(np.arange(1, len(loss) + 1), loss, color=colour, alpha=0.15, linewidth=0.8)
        steps, means = _running_mean(loss)
        width = max(1.5, 4 - 1.2 * number)
        axis.plot(steps, means, color=colour, linestyle=line, linewidth=width, label=accuracy)
    axis.set(yscale="log", xlabel="step", ylabel="loss" if weight == 1 else "loss / its weight")
    axis.set_title(f"Handwritten digits: loss, running mean over {_SMOOTHING} steps", loc="left")
    axis.legend(frameon=False)


def _running_mean(values: Any) -> tuple[Any, Any]:
    """The positions and means of full windows; partial ones would bend the ends towards zero."""
    window = min(_SMOOTHING, len(values))
    means = np.convolve(values, np.ones(window) / window, mode="valid")
    return np.arange(len(means)) + (window + 1) / 2, means


def _save(figure: Any, path: Path) -> None:
    try:
        with whole_file(path) as temporary:
            figure.savefig(temporary, dpi=150, format="png")
    except OSError as error:
        raise writing_error(path, error) from error
