"""The plot of a history of numerics: panels of lines over the measured steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supremum.atomic_files import whole_file, writing_error
from supremum.errors import UnknownNameError, printable
from supremum.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = 6
"""The most names in a panel."""
_COLUMNS = 2
"""So that the texts can be read in a picture as wide as a page."""

Numbers = Mapping[str, Mapping[str, Sequence[float]]]
"""By the name of a number, such as `"largest"`, its values over the steps, by the names of what they belong to."""


def draw(steps: Sequence[int], kinds: Mapping[str, Numbers], loss_scale: Sequence[float | None]) -> Any:
    """Draw a history.

    Args:
        steps: the measured steps.
        kinds: the numbers of each kind of values.
        loss_scale: the loss scale of each step; None without loss scaling.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    require("A plot", "matplotlib")
    from matplotlib.figure import Figure  # matplotlib is an optional dependency

    panels = [(kind, number) for kind, numbers in kinds.items() for number in numbers if _is_shown(numbers, number)]
    has_scale = any(scale is not None for scale in loss_scale)
    count = len(panels) + has_scale
    rows, columns = math.ceil(count / _COLUMNS), min(count, _COLUMNS)
    figure = Figure(figsize=(4.4 * columns, 2.8 * rows), layout="constrained")
    places = list(figure.subplots(rows, columns, squeeze=False).flat)
    colors: dict[str, str] = {}
    for (kind, number), place in zip(panels, places, strict=False):
        _draw(place, steps, kind, number, kinds[kind], colors)
    if has_scale:
        place = places[len(panels)]
        place.plot(steps, [math.nan if scale is None else scale for scale in loss_scale], **_style(steps))
        place.set_yscale("log", base=2)
        _finish(place, "loss scale")
    for place in places[count:]:
        place.set_axis_off()
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a file, completely or not at all; the ending chooses the format.

    Args:
        figure: a `matplotlib.figure.Figure`.
        path: the file.

    Raises:
        UnknownNameError: for a format that matplotlib does not write.
        FileError: if the file cannot be written; an `OSError`.
    """
    formats = figure.canvas.get_supported_filetypes()
    ending = path.suffix.removeprefix(".").lower() or "png"
    if ending not in formats:
        raise UnknownNameError("format of a picture", ending, formats)
    try:
        with whole_file(path) as temporary:
            figure.savefig(temporary, format=ending)
    except OSError as error:
        raise writing_error(path, error) from error


def _is_shown(numbers: Numbers, number: str) -> bool:
    if number == "not_finite":  # marked in the panel of the largest
        return False
    if number == "zeros" and len(numbers) <= len(("largest", "zeros", "not_finite")):  # no format was asked about
        return False
    return number == "largest" or any(value > 0 for values in numbers[number].values() for value in values)


def _draw(place: Any, steps: Sequence[int], kind: str, number: str, numbers: Numbers, colors: dict[str, str]) -> None:
    from matplotlib.ticker import PercentFormatter

    named = numbers[number]
    order = sorted(named, key=lambda name: max((v for v in named[name] if v == v), default=0.0), reverse=True)
    for name in order[:_LINES]:
        color = colors.setdefault(name, f"C{len(colors) % 10}")
        values = [value or math.nan for value in named[name]] if number == "largest" else named[name]
        place.plot(steps, values, color=color, label=printable(name), **_style(steps))
        bad = numbers["not_finite"][name]
        marked = [at for at, share in enumerate(bad) if share > 0] if number == "largest" else []
        if marked:
            place.plot([steps[at] for at in marked], [values[at] for at in marked], "x", color="tab:red")
    if number == "largest":
        place.set_yscale("log")
    else:
        place.yaxis.set_major_formatter(PercentFormatter(1.0))
        place.set_ylim(bottom=0.0)
    if len(order) > 1 or order != [""]:
        place.legend(frameon=False, fontsize="small")
    _finish(place, _title(kind, number))


def _title(kind: str, number: str) -> str:
    what, text = kind.replace("_", " "), {"largest": "largest magnitude", "zeros": "zeros"}.get(number)
    if text is None:
        name, outcome = number.split("/")
        text = f"flushed to zero in {name}" if outcome == "flushed" else f"overflow in {name}"
    return f"{what}: {text}"


def _style(steps: Sequence[int]) -> dict[str, Any]:
    return {"marker": "o" if len(steps) < 20 else "", "markersize": 4}


def _finish(place: Any, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    place.set(xlabel="step")
    place.set_title(title, fontsize="medium")
    place.xaxis.set_major_locator(MaxNLocator(integer=True))
    place.grid(alpha=0.3)
