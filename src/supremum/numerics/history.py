"""What was measured while a program trained: a record for each measured step, as numbers, plot and plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from supremum.argument_checks import chosen
from supremum.atomic_files import as_path
from supremum.errors import ArgumentError
from supremum.numerics.history_plot import draw, save_figure
from supremum.numerics.value_counts import ValueCounts
from supremum.reports import plain_fields, plural

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class NumericsRecord:
    """What was measured in one step.

    Args:
        step: the number of the step, from 0.
        loss_scale: the loss scale of the step; None without loss scaling.
        skipped_steps: how many steps were skipped before it.
        values: the counts by kind, such as `"gradients"`, and by name, such as that of a layer.

    >>> import jax.numpy as jnp
    >>> from supremum import numerics
    >>> watched = numerics.watch(lambda w: w * 1e-9, every=1, formats=["float16"])
    >>> _ = watched(jnp.array([1.0, 300.0]))
    >>> record = watched.history.records[0]
    >>> record.numbers()["outputs/result/float16/flushed"]
    0.5
    """

    step: int
    loss_scale: float | None
    skipped_steps: int
    values: Mapping[str, Mapping[str, ValueCounts]]

    def numbers(self) -> dict[str, float]:
        """The record as numbers by name, which loggers take: `on_log=lambda numbers: wandb.log(numbers)`.

        Returns:
            `"step"`; with loss scaling `"loss_scale"` and `"skipped_steps"`; and for each kind and name, such as
            `"gradients/dense"`: `".../largest"`, the largest magnitude; `".../zeros"` and `".../not_finite"`, shares of
            the values; and for each format `".../float16/flushed"` and `".../float16/overflow"`, shares too.
        """
        scaling: dict[str, float] = {}
        if self.loss_scale is not None:
            scaling = {"loss_scale": self.loss_scale, "skipped_steps": self.skipped_steps}
        numbers = {"step": self.step, **scaling}
        for kind, named in self.values.items():
            for name, counts in named.items():
                numbers |= {f"{kind}/{name}/{what}": number for what, number in numbers_of(counts).items()}
        return numbers

    def to_dict(self) -> dict[str, Any]:
        """The record as plain data for JSON."""
        return plain_fields(self)


def numbers_of(counts: ValueCounts) -> dict[str, float]:
    """The largest magnitude of some values, and shares of them, by name; see `NumericsRecord.numbers`."""
    total = max(1, counts.values)
    numbers: dict[str, float] = {
        "largest": counts.largest or 0.0,
        "zeros": counts.zeros / total,
        "not_finite": (counts.nans + counts.infinities) / total,
    }
    for name, row in counts.formats.items():
        numbers |= {f"{name}/overflow": row.shares[0], f"{name}/flushed": row.shares[1]}
    return numbers


@dataclass
class NumericsHistory:
    """What was measured while a program trained.

    Attributes:
        records: a record for each measured step.

    >>> import jax.numpy as jnp
    >>> from supremum import numerics
    >>> watched = numerics.watch(lambda w: w * 1e-3, every=2, formats=["float16"])
    >>> w = jnp.array([1.0, 300.0])
    >>> for _ in range(5):
    ...     w = watched(w)
    >>> watched.history.steps
    [0, 2, 4]
    >>> watched.history.numbers("outputs", "float16/flushed")
    {'result': [0.0, 0.5, 1.0]}
    """

    records: list[NumericsRecord] = field(default_factory=list[NumericsRecord])

    @property
    def steps(self) -> list[int]:
        """The numbers of the measured steps."""
        return [record.step for record in self.records]

    @property
    def loss_scale(self) -> list[float | None]:
        """The loss scale of each measured step; None without loss scaling."""
        return [record.loss_scale for record in self.records]

    @property
    def kinds(self) -> list[str]:
        """The kinds of values, such as `"gradients"`."""
        return list(dict.fromkeys(kind for record in self.records for kind in record.values))

    def numbers(self, kind: str, number: str) -> dict[str, list[float]]:
        """One number of all names over the measured steps; NaN where a step has no such name.

        Args:
            kind: the kind of the values, one of `kinds`.
            number: which number, such as `"largest"` or `"float16/flushed"`; see `NumericsRecord.numbers`.

        Raises:
            UnknownNameError: for a kind or number that was not measured; a `ValueError`.
        """
        chosen("kind of values", kind, self.kinds)
        read = [
            {name: numbers_of(counts) for name, counts in record.values.get(kind, {}).items()}
            for record in self.records
        ]
        known = dict.fromkeys(each for named in read for numbers in named.values() for each in numbers)
        chosen("number", number, known)
        names = dict.fromkeys(name for named in read for name in named)
        return {name: [named.get(name, {}).get(number, NAN) for named in read] for name in names}

    def to_dict(self) -> dict[str, Any]:
        """The history as plain data for JSON."""
        return plain_fields(self)

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the shares of values that formats lose, the largest magnitudes and the loss scale, over the steps.

        A panel shows the names with the largest numbers. Shares that are zero throughout have no panel. Steps with
        values that are not finite are marked.

        Args:
            path: where to save the plot. Its extension, such as `.svg`, selects the format; PNG without one. None to
                not save it.

        Returns:
            The `matplotlib.figure.Figure`.

        Raises:
            ArgumentError: if nothing was measured; a `ValueError`.
            UnknownNameError: for a format that matplotlib does not write.
            FileError: if the file cannot be written; an `OSError`.
            MissingPackageError: without matplotlib; `pip install 'supremum[plot]'` installs it.
        """
        if not self.records:
            raise ArgumentError("there is nothing to plot, because no step was measured")
        kinds = {kind: self._numbers_of_kind(kind) for kind in self.kinds}
        figure = draw(self.steps, kinds, self.loss_scale)
        if path is not None:
            save_figure(figure, as_path(path))
        return figure

    def _numbers_of_kind(self, kind: str) -> dict[str, dict[str, list[float]]]:
        counts = next(iter(next(record.values[kind] for record in self.records if record.values.get(kind)).values()))
        return {number: self.numbers(kind, number) for number in numbers_of(counts)}

    def __repr__(self) -> str:
        return f"NumericsHistory({plural(len(self.records), 'measured step')})"
