"""The attribution of an error: a row for each operation, as a sentence, a table, plain data, HTML and a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from supremum.argument_checks import whole_number
from supremum.jax_compat import type_text
from supremum.numerics.attributing import ErrorShares
from supremum.numerics.diagnosis import Diagnosis, Effect, in_words
from supremum.numerics.error_tallies import Fact, Share
from supremum.numerics.widening import floating_avals
from supremum.render import shortened
from supremum.reports import (
    MOST_DRAWN,
    Bar,
    Column,
    OperationRow,
    Report,
    RowTable,
    bars_picture,
    plain_data,
    rows_by,
    short_names,
    short_place,
)
from supremum.tracing import RowFields

DECLARED = "declared"
"""The policy of a function that runs in the dtypes that it declares."""
_LONGEST = 60
"""The longest expression in a sentence, in characters."""
_NO_DERIVATIVE = "in a while loop, which has no derivative: only its own error is known"


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was tried: an operation in a wider dtype.

    Args:
        dtype: the dtype.
        others: how many narrow operations that feed it were computed in the dtype with it.
        error: the error of the result with the change, measured.
        follows: whether these are the operations after it instead.

    >>> Change("float32", 2, 1e-6).others
    2
    """

    dtype: str
    others: int
    error: float
    follows: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionRow(OperationRow):
    """An operation and its share of the error; see `reports.OperationRow` for the fields of every operation.

    Args:
        types: the types of its floating-point results, such as `"bfloat16[8,128]"`.
        runs: how often it ran.
        estimate: its share of the error, with its sign, to first order; None where there is no derivative.
        bound: the same with the magnitude of each value's share; None where there is no derivative.
        local_error: the root mean square of its own error: the operation in its dtype less the operation in float64.
        relative_in: the largest relative error of its operands.
        relative_out: the relative error of its results.
        through: the share of the error that passes through its results, its own included.
        effect: what it does to the digits, such as `"cancellation"`.
        words: the same in words.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import attribute
    >>> report = attribute(lambda x: jnp.sum(x + 1e-3), "declared")(
    ...     jnp.ones(4, "bfloat16")
    ... )
    >>> row = report.rows[0]
    >>> row.expression, row.effect, round(row.estimate, 4)
    ('x + 1e-3', 'absorbed addition', -0.004)
    """

    types: tuple[str, ...]
    runs: int
    estimate: float | None
    bound: float | None
    local_error: float
    relative_in: float
    relative_out: float
    through: float | None
    effect: str
    words: str


@dataclass(frozen=True, slots=True)
class AttributionTotal:
    """The shares of several operations together.

    Args:
        estimate: the sum of their shares, with signs.
        bound: the sum of their bounds.
        operations: how many there are.

    >>> AttributionTotal(0.5, 1.5, 2).bound
    1.5
    """

    estimate: float
    bound: float
    operations: int


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(Report):
    """Which operations the error of a result comes from.

    Args:
        outputs: what the function returned in the narrow run.
        policy: the name of the policy.
        run: the error, and the shares in it.
        diagnoses: what each operation does to the digits, those that are most to blame first.
        change: the change that was tried; None if there is no error.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import attribute
    >>> def loss(w, x):
    ...     return jnp.mean(jnp.square(x @ w))
    >>> report = attribute(loss)(jnp.full((3, 3), 0.7), jnp.full((2, 3), 1.3))
    >>> [row.effect for row in report.rows[:3]]
    ['rounding', 'rounding', 'rounding']
    >>> abs(report.predicted - report.error) < 0.1 * abs(report.error)
    True
    """

    outputs: Any
    policy: str
    run: ErrorShares
    diagnoses: Sequence[Diagnosis]
    change: Change | None

    @property
    def error(self) -> float:
        """The narrow result less the reference if it is one number, and `relative_error` if there are several."""
        return self.run.error

    @property
    def relative_error(self) -> float:
        """The norm of the difference between the narrow result and the reference, relative to that of the reference."""
        return self.run.reference.relative(self.error)

    @property
    def is_number(self) -> bool:
        """Whether the error is that of one number."""
        return self.run.reference.is_number

    @property
    def predicted(self) -> float:
        """The sum of all shares, which is the error to first order."""
        return self._sum(Share.SIGNED)

    @property
    def bound(self) -> float:
        """The sum of all bounds."""
        return self._sum(Share.ABSOLUTE)

    def _sum(self, share: Share) -> float:
        return float(sum(self.run.shares[each.step.number][share] for each in self.diagnoses))

    @cached_property
    def rows(self) -> tuple[AttributionRow, ...]:
        """A row for each operation, those that are most to blame first."""
        fields = RowFields()
        return tuple(self._row(each, fields) for each in self.diagnoses)

    def _row(self, diagnosis: Diagnosis, fields: RowFields) -> AttributionRow:
        step, facts = diagnosis.step, self.run.facts[diagnosis.step.number]
        in_loop = any(caller.primitive.name == "while" for caller in step.site.callers)

        def share(kind: Share) -> float | None:
            return None if in_loop else float(self.run.shares[step.number][kind])

        return AttributionRow(
            **fields.of(step.site),
            types=tuple(map(type_text, floating_avals(step.equation.outvars))),
            runs=int(facts[Fact.RUNS]),
            estimate=share(Share.SIGNED),
            bound=share(Share.ABSOLUTE),
            local_error=float(np.sqrt(facts[Fact.LOCAL_SQUARED] / max(facts[Fact.VALUES], 1))),
            relative_in=diagnosis.relative_in,
            relative_out=diagnosis.relative_out,
            through=share(Share.THROUGH),
            effect=str(diagnosis.effect),
            words=_NO_DERIVATIVE if in_loop else in_words(diagnosis, facts),
        )

    @property
    def blamed(self) -> list[AttributionRow]:
        """The first row, and those of the others that may have a share of the error."""
        return [row for place, row in enumerate(self.rows) if not place or row.estimate is None or row.bound]

    def __len__(self) -> int:
        return len(self.diagnoses)

    def by(self, key: str) -> dict[str, AttributionTotal]:
        """The shares of all operations of a line, scope or primitive together, the largest first.

        Args:
            key: `"line"`, `"scope"` or `"primitive"`.

        Raises:
            UnknownNameError: for another key.
        """
        totals = {
            name: AttributionTotal(
                sum(row.estimate or 0.0 for row in rows), sum(row.bound or 0.0 for row in rows), len(rows)
            )
            for name, rows in rows_by(key, self.rows).items()
        }
        return dict(sorted(totals.items(), key=lambda item: abs(item[1].estimate), reverse=True))

    @property
    def sentence(self) -> str:
        """The line that is most to blame, what it does to the digits, and the change that was tried."""
        if self.error == 0:
            return f"The result {self._under} is the same as in float64."
        if self.change is None:
            return f"No operation explains the error of {error_text(self.error)}."
        row = self.rows[0]
        code = f"`{shortened(row.expression, _LONGEST)}`" if row.expression else row.primitive
        place = short_place(short_names(each.file for each in self.rows), row)
        others, error = self.change.others, error_text(self.change.error)
        verb = "follow" if self.change.follows else "feed"
        which = f"the {others} operations that {verb} it" if others > 1 else f"the operation that {verb}s it"
        feeding = f", with {which}," if others else ""
        if not math.isfinite(self.change.error) and not math.isfinite(self.error):
            tried = f"In {self.change.dtype}{feeding} the error is still not finite."
        elif error == error_text(self.error):
            tried = f"In {self.change.dtype}{feeding} the error stays {error}."
        else:
            tried = f"In {self.change.dtype}{feeding} the error is {error} instead of {error_text(self.error)}."
        return f"{place} {code}: {row.words}. {tried}"

    def to_dict(self) -> dict[str, Any]:
        """The attribution as plain data for JSON, without the outputs; infinite numbers are None."""
        return plain_data({
            "policy": self.policy,
            "sentence": self.sentence,
            "error": self.error,
            "relative_error": self.relative_error,
            "predicted": self.predicted,
            "bound": self.bound,
            "change": self.change,
            "rows": self.rows,
        })  # fmt: skip

    @property
    def _under(self) -> str:
        return f"under {self.policy}" if self.policy != DECLARED else "in the declared dtypes"

    @property
    def title(self) -> str:
        """The error, measured and predicted, in one sentence."""
        if not math.isfinite(self.relative_error):
            return f"The error {self._under} is not finite, so the operations have no shares of it."
        if self.is_number:
            measured = f"{error_text(self.error)} ({self.relative_error:.2g} of the result)"
        else:
            measured = f"{self.relative_error:.2g} of the norm of the results"
        return (
            f"The error {self._under} is {measured}; the operations together predict {error_text(self.predicted)}, "
            f"and at most {self.bound:.2g}."
        )

    def __repr__(self) -> str:
        return f"Attribution({len(self)} operations, {self.policy}, error {error_text(self.error)})"

    def __str__(self) -> str:
        return RowTable(self.blamed, self._columns()).to_text(self.sentence, self.title)

    def _repr_html_(self) -> str:
        return RowTable(self.rows, self._columns()).to_html(f"{self.sentence} {self.title}")

    def _columns(self) -> list[Column]:
        return [
            Column("operation", lambda row: row.primitive),
            Column("type", lambda row: row.types[0] if len(row.types) == 1 else f"{row.types[0]}, ..."),
            Column("runs", lambda row: str(row.runs), right=True),
            Column("share", lambda row: percent_of(row.estimate, self.error), right=True),
            Column("at most", lambda row: percent_of(row.bound, abs(self.error)), right=True),
            Column("effect", lambda row: effect_of(row, self.error)),
        ]

    def to_svg(self, lines: int = 20) -> str:
        """Draw the shares of source lines as bars, as a self-contained SVG.

        Args:
            lines: the most lines to draw, those with the largest shares.
        """
        count = whole_number("lines", lines, 1, MOST_DRAWN)
        names = short_names(row.file for row in self.rows)
        first = {row.where: row for row in reversed(self.rows)}
        drawn = [
            Bar(
                short_place(names, first[where]),
                first[where].expression or first[where].primitive,
                total.estimate,
                total.bound,
            )
            for where, total in list(self.by("line").items())[:count]
            if total.bound
        ]
        return bars_picture(f"Error {self._under}", [self.sentence, self.title], drawn)


def error_text(value: float) -> str:
    """An error in a few digits."""
    return f"{value:.3g}" if math.isfinite(value) else "not finite"


def percent_of(value: float | None, total: float) -> str:
    """A share of the error in percent, with its sign; empty if unknown."""
    if value is None:
        return "?"
    if not math.isfinite(total) or total == 0 or not math.isfinite(value):
        return f"{value:.2g}"
    if value == 0:
        return "0%"
    return f"{100 * value / total:.0f}%" if abs(value) >= 0.01 * abs(total) else "<1%"


def effect_of(row: AttributionRow, error: float) -> str:
    """The effect; with the share that passes through an operation that is not to blame for its own error only."""
    if row.effect in (Effect.CANCELLATION, Effect.AMPLIFICATION) and row.through is not None:
        return f"{row.effect} ({percent_of(row.through, error)} passes)"
    return row.effect
