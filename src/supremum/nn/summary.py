"""Summarize a model layer by layer."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict, dataclass
from typing import Any

import jax

from supremum.formats import as_format
from supremum.nn.symbolic import is_spec
from supremum.nn.variables import Variable
from supremum.render import aligned, columns_to_html


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One layer of a summary.

    Args:
        path: its path; empty for the model itself.
        layer: its class.
        output_shape: the shape of its output, with `None` for axes of any length; empty if it was not called.
        output_dtype: the dtype of its output.
        trainable: the number of its own parameters that optimizers change.
        other: the number of its other parameters.
        variable_dtype: the dtype its weights are stored in; empty if it has none.
        compute_dtype: the dtype it casts its inputs to; `"infer"` for the result type of inputs and parameters, empty
            if it does not cast.
        nbytes: the bytes of its own variables.
    """

    path: str
    layer: str
    output_shape: str
    output_dtype: str
    trainable: int
    other: int
    variable_dtype: str
    compute_dtype: str
    nbytes: int


_TITLES = ("path", "layer", "output", "dtype", "parameters", "stored in", "computes in", "bytes")
_NUMBERS = frozenset({4, 7})


@dataclass(frozen=True, slots=True)
class Summary:
    """All layers of a model, which print as a table, as wide as the terminal at most, and render in notebooks.

    Args:
        rows: the layers, outermost first. Shared variables count once.

    >>> from supremum import nn
    >>> model = nn.SequentialNetwork([nn.Dense(4), nn.Dense(2)], dtype="mixed_bfloat16")
    >>> nn.initialize(model, jax.numpy.ones((1, 3)))
    >>> summary = model.summary()
    >>> (
    ...     summary.trainable,
    ...     [
    ...         (row.path, row.variable_dtype, row.compute_dtype)
    ...         for row in summary.rows[1:]
    ...     ],
    ... )
    (26, [('dense', 'float32', 'bfloat16'), ('dense_1', 'float32', 'bfloat16')])
    """

    rows: tuple[SummaryRow, ...]

    @property
    def trainable(self) -> int:
        """The number of parameters that optimizers change."""
        return sum(row.trainable for row in self.rows)

    @property
    def other(self) -> int:
        """The number of other parameters, such as running statistics."""
        return sum(row.other for row in self.rows)

    @property
    def nbytes(self) -> int:
        """The bytes of all variables."""
        return sum(row.nbytes for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data for JSON."""
        totals = {"trainable": self.trainable, "other": self.other, "nbytes": self.nbytes}
        return {"layers": [asdict(row) for row in self.rows], **totals}

    def _totals(self) -> str:
        other = f" and {self.other:,} others" if self.other else ""
        return f"{self.trainable:,} trainable parameters{other}, {self.nbytes:,} bytes"

    def __str__(self) -> str:
        # `shutil` asks the terminal of the process, even if `sys.stdout` was replaced.
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return aligned([_TITLES, *map(_line, self.rows)], right=_NUMBERS, width=width) + f"\n\n{self._totals()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return columns_to_html(self._totals(), (_TITLES, *map(_line, self.rows)), right=_NUMBERS)


def _line(row: SummaryRow) -> tuple[str, ...]:
    own = f"{row.trainable + row.other:,}"
    return (
        row.path, row.layer, row.output_shape, row.output_dtype, own, row.variable_dtype, row.compute_dtype,
        f"{row.nbytes:,}",
    )  # fmt: skip


def summary_of(model: Any) -> Summary:
    """Summarize a layer and the layers inside it.

    Args:
        model: the layer.
    """
    seen: set[int] = set()
    trained = {id(each) for each in model.trainable_variables.values()}
    return Summary(tuple(_row(path, layer, seen, trained) for path, layer in model.layers_by_path().items()))


def _row(path: str, layer: Any, seen: set[int], trained: set[int]) -> SummaryRow:
    own: list[Variable] = [variable for variable in layer.own_variables() if id(variable) not in seen]
    seen |= {id(variable) for variable in own}
    outputs = [spec for spec in jax.tree.leaves(layer.output_spec, is_leaf=is_spec) if is_spec(spec)]
    stored = dict.fromkeys(str(as_format(variable.true_dtype)) for variable in own)
    compute = layer.compute_dtype
    return SummaryRow(
        path=path,
        layer=type(layer).__name__,
        output_shape=", ".join(str(spec.shape) for spec in outputs),
        output_dtype=", ".join(dict.fromkeys(str(spec.dtype) for spec in outputs)),
        trainable=sum(variable.size for variable in own if id(variable) in trained),
        other=sum(variable.size for variable in own if id(variable) not in trained),
        variable_dtype=", ".join(stored),
        compute_dtype="infer" if compute is None else str(as_format(compute)) if layer.autocast else "",
        nbytes=sum(variable.nbytes for variable in own),
    )
