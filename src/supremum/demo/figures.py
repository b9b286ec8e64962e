"""The picture of the case `"underflow"` and its caption."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from supremum.atomic_files import whole_file, writing_error
from supremum.demo.classifier import NARROW_WEIGHTS, REMEDY, SCALE, UNSCALED, DemoRun, Experiment
from supremum.demo.digits import Floats
from supremum.demo.underflow import underflowing
from supremum.formats import as_format

# The colours of Okabe and Ito, which colour-blind readers can distinguish. Later curves are thinner, so that all curves
# are visible where they coincide.
_STYLES: dict[str, tuple[str, float]] = {
    "float32": ("#000000", 6),
    "bfloat16": ("#0072B2", 3.5),
    REMEDY: ("#009E73", 1.5),
    UNSCALED: ("#D55E00", 2),
    NARROW_WEIGHTS: ("#CC79A7", 2),
}
_GREY = "#888888"
_SMOOTHING = 45
_BINS = 60
_UNDERFLOW = as_format("float16").smallest_subnormal / 2


def underflow_caption(case: Experiment, reports: Mapping[str, DemoRun], gradients: Floats) -> dict[str, str]:
    """Say what the picture shows: a sentence with figures for each run but float32, and one about the remedy.

    Args:
        case: the case.
        reports: the runs by name.
        gradients: the magnitudes that `first_gradients` returns.

    >>> from supremum.demo import CASES
    >>> from supremum.training import History
    >>> history = History(
    ...     [0], {"loss": [1e-6]}, [2e-6, 1e-6], [1.0, 1.0], [False, False], [0.1]
    ... )
    >>> weights, gradients = np.float32([0.5, 0.25]), np.float32([1e-9, 1e-7])
    >>> reports = {
    ...     label: DemoRun(
    ...         label,
    ...         policy,
    ...         0.9,
    ...         None,
    ...         weights,
    ...         weights * 2,
    ...         8,
    ...         4.0,
    ...         seed=0,
    ...         history=history,
    ...     )
    ...     for label, policy in CASES["underflow"].runs.items()
    ... }
    >>> underflow_caption(CASES["underflow"], reports, gradients)["bfloat16"]
    'It has the range of float32 and needs no loss scale. 90 % are right.'
    """
    lost, saved = underflowing(gradients), 1 - underflowing(gradients, SCALE.initial_loss_scale)
    right = {name: f"{100 * report.test_accuracy:.0f} %" for name, report in reports.items()}
    moved = {name: f"{100 * report.moved:.0f} %" for name, report in reports.items()}
    return {
        UNSCALED: f"The loss is weighted by {_written(case.weight)}, and {100 * lost:.3g} % of the gradients are below "
        f"{_written(_UNDERFLOW)}, which float16 rounds to zero. {moved[UNSCALED]} of the weights move; "
        f"{right[UNSCALED]} of the test set are right.",
        REMEDY: f"Times {SCALE.initial_loss_scale:,.0f}, {100 * saved:.3g} % of the gradients fit into float16. "
        f"{right[REMEDY]} are right, in float32 {right['float32']}.",
        "bfloat16": f"It has the range of float32 and needs no loss scale. {right['bfloat16']} are right.",
        NARROW_WEIGHTS: f"A step of {_written(case.learning_rate)} is less than half the distance from most weights to "
        f"the next float16 number, and is rounded away. {moved[NARROW_WEIGHTS]} of the weights move, in float32 "
        f"{moved['float32']}; {right[NARROW_WEIGHTS]} are right.",
        "the remedy": 'Policy("mixed_float16"): products in float16, weights in float32, the loss scaled.',
    }


def _written(value: float) -> str:
    return np.format_float_scientific(value, 0, trim="-", exp_digits=1)


def draw_underflow(path: Path, case: Experiment, reports: Mapping[str, DemoRun], gradients: Floats) -> None:
    """Draw the losses, the gradients beside the range of float16, and the weights that moved; the caption is below.

    Args:
        path: the PNG file, which is either complete or absent.
        case: the case.
        reports: the runs by name.
        gradients: the magnitudes that `first_gradients` returns.

    >>> from supremum.demo import CASES
    >>> from supremum.training import History
    >>> history = History(
    ...     [0], {"loss": [1e-6]}, [2e-6, 1e-6], [1.0, 1.0], [False, False], [0.1]
    ... )
    >>> weights, gradients = np.float32([0.5, 0.25]), np.float32([1e-9, 1e-7])
    >>> reports = {
    ...     label: DemoRun(
    ...         label,
    ...         policy,
    ...         0.9,
    ...         None,
    ...         weights,
    ...         weights * 2,
    ...         8,
    ...         4.0,
    ...         seed=0,
    ...         history=history,
    ...     )
    ...     for label, policy in CASES["underflow"].runs.items()
    ... }
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     draw_underflow(
    ...         Path(folder, "underflow.png"), CASES["underflow"], reports, gradients
    ...     )
    ...     Path(folder, "underflow.png").read_bytes()[1:4]
    b'PNG'
    """
    from matplotlib.figure import Figure  # without pyplot there is no global state, and no window for any backend

    figure = Figure(figsize=(12, 8), layout="constrained")
    upper, lower = np.asarray(figure.subfigures(2, 1, height_ratios=(3, 1)))
    upper.suptitle("What float16 loses, and how mixed precision keeps it", fontsize=15)
    axes: Any = upper.subplot_mosaic([["losses", "gradients"], ["losses", "weights"]], width_ratios=(5, 4))
    for axis in axes.values():
        axis.spines[["top", "right"]].set_visible(False)
    _draw_losses(axes["losses"], case, reports)
    _draw_gradients(axes["gradients"], gradients)
    _draw_weights(axes["weights"], reports[NARROW_WEIGHTS])
    top = 0.97
    for name, sentence in underflow_caption(case, reports, gradients).items():
        text = textwrap.wrap(sentence, 125)
        lower.text(0.015, top, name, va="top", linespacing=1.4, color=_STYLES.get(name, (None,))[0], weight="bold")
        lower.text(0.175, top, "\n".join(text), va="top", linespacing=1.4)
        top -= 0.05 + 0.1 * len(text)
    try:
        with whole_file(path) as temporary:
            figure.savefig(temporary, dpi=150, format="png")
    except OSError as error:
        raise writing_error(path, error) from error


def smoothed_losses(losses: Sequence[float]) -> tuple[Any, Any]:
    """The positions and values of the running mean of losses over 45 steps.

    Args:
        losses: the loss of each step.

    >>> positions, means = smoothed_losses([1.0] * 45 + [2.0])
    >>> positions.tolist(), [round(float(mean), 3) for mean in means]
    ([23.0, 24.0], [1.0, 1.022])
    """
    # Partial windows would bend the ends towards zero.
    window = min(_SMOOTHING, len(losses))
    means = np.convolve(losses, np.ones(window) / window, mode="valid")
    return np.arange(len(means)) + (window + 1) / 2, means


def _draw_losses(axis: Any, case: Experiment, reports: Mapping[str, DemoRun]) -> None:
    ends: dict[str, float] = {}
    for name, (colour, width) in _STYLES.items():
        steps, weighted = smoothed_losses(reports[name].history.loss)
        means = weighted / case.weight
        axis.plot(steps, means, color=colour, linewidth=width, solid_capstyle="round")
        ends[name] = means[-1]
    axis.set_title(f"Loss, running mean of {_SMOOTHING} steps", loc="left")
    axis.set(xlabel="step", ylabel="loss / its weight")
    low, high = axis.get_ylim()
    below = np.inf
    for name, end in sorted(ends.items(), key=lambda item: -item[1]):
        below = min(end, below - (high - low) / 22)
        label = f" {name}: {100 * reports[name].test_accuracy:.0f} % right"
        axis.annotate(label, (1, below), xycoords=axis.get_yaxis_transform(), color=_STYLES[name][0], va="center")
    axis.set_xlim(0, len(reports["float32"].history.loss))


def _draw_gradients(axis: Any, gradients: Floats) -> None:
    scale = SCALE.initial_loss_scale
    bins = np.logspace(np.log10(gradients.min()), np.log10(gradients.max() * scale), 2 * _BINS)
    axis.axvspan(bins[0], _UNDERFLOW, color=_STYLES[UNSCALED][0], alpha=0.12, linewidth=0)
    for factor, name in ((1.0, UNSCALED), (scale, REMEDY)):
        axis.hist(gradients * factor, bins, color=_STYLES[name][0], alpha=0.8)
    top = axis.get_ylim()[1]
    axis.text(bins[0], 1.02 * top, " zero in float16", color=_STYLES[UNSCALED][0], va="bottom")
    axis.text(bins[-1], 1.02 * top, f"times {scale:,.0f}", color=_STYLES[REMEDY][0], va="bottom", ha="right")
    axis.set(xscale="log", xlim=(bins[0], bins[-1]), ylim=(0, 1.18 * top), yticks=[])
    axis.set_title("Gradients before the first step", loc="left")
    axis.set_xlabel("magnitude")


def _draw_weights(axis: Any, report: DemoRun) -> None:
    magnitudes = np.abs(report.initial_weights)
    moved = (report.final_weights != report.initial_weights) & (magnitudes > 0)
    kept = (report.final_weights == report.initial_weights) & (magnitudes > 0)
    bins = np.linspace(0, magnitudes.max(), _BINS)
    axis.hist([magnitudes[moved], magnitudes[kept]], bins, stacked=True, color=[_STYLES[NARROW_WEIGHTS][0], _GREY])
    top = axis.get_ylim()[1]
    axis.text(0, 1.02 * top, "moved", color=_STYLES[NARROW_WEIGHTS][0], va="bottom")
    axis.text(bins[-1], 1.02 * top, "never moved", color=_GREY, va="bottom", ha="right")
    axis.set(ylim=(0, 1.18 * top), yticks=[], xlabel="magnitude at the start")
    axis.set_title("Weights stored in float16", loc="left")
