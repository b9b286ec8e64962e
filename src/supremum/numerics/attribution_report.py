"""The attribution of an error: a row for each operation, as a sentence, a table, plain data, HTML and a picture."""

from __future__ import annotations

import json
import math
import shutil
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from supremum.argument_checks import chosen, whole_number
from supremum.jax_compat import type_text
from supremum.jaxprs import Step, aval_of
from supremum.numerics.attributing import Found
from supremum.numerics.diagnosis import Digits, Effect, in_words
from supremum.numerics.error_tallies import Fact, Share
from supremum.numerics.widening import is_floating
from supremum.render import Bar, aligned, bars_picture, columns_to_html, fitted
from supremum.tracing import Origins, Sources

DECLARED = "declared"
"""The policy of a function that runs in the dtypes that it declares."""
_SHOWN = 20
_MOST_DRAWN = 1000
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


@dataclass(frozen=True, slots=True)
class Finding:
    """The step that is most to blame, and the change that was tried."""

    step: Step
    change: Change


@dataclass(frozen=True, slots=True)
class AttributionRow:
    """An operation and its share of the error.

    Args:
        file: the file of the user's expression. If no user code led there, a library's file, or empty.
        line: the line in that file.
        expression: the source text, on one line.
        scope: the enclosing `jax.named_scope` blocks, such as `"encoder/norm"`; layers of Flax open them.
        primitive: the JAX primitive, such as `"exp"`.
        types: the types of its floating-point results, such as `"bfloat16[8,128]"`.
        backward: whether it belongs to a backward pass.
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
    >>> found = attribute(lambda x: jnp.sum(x + 1e-3), "declared")(
    ...     jnp.ones(4, "bfloat16")
    ... )
    >>> row = found.rows[0]
    >>> row.expression, row.effect, round(row.estimate, 4)
    ('x + 1e-3', 'absorbed addition', -0.004)
    """

    file: str
    line: int
    expression: str
    scope: str
    primitive: str
    types: tuple[str, ...]
    backward: bool
    runs: int
    estimate: float | None
    bound: float | None
    local_error: float
    relative_in: float
    relative_out: float
    through: float | None
    effect: str
    words: str

    @property
    def where(self) -> str:
        """The user's line, as `file:line`; `"-"` if there is none."""
        return f"{self.file}:{self.line}" if self.file else "-"

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data for JSON; infinite numbers are None."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in {**found, "types": list(self.types)}.items()
        }


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


_KEYS: dict[str, Callable[[AttributionRow], str]] = {
    "line": lambda row: row.where,
    "scope": lambda row: row.scope,
    "primitive": lambda row: row.primitive,
}


class Attribution:
    """Which operations the error of a result comes from.

    Args:
        outputs: what the function returned in the narrow run.
        policy: the name of the policy.
        found: what the run found.
        steps: the operations, those that are most to blame first.
        digits: what each of them does to the digits.
        finding: the change that was tried.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import attribute
    >>> def loss(w, x):
    ...     return jnp.mean(jnp.square(x @ w))
    >>> found = attribute(loss)(jnp.full((3, 3), 0.7), jnp.full((2, 3), 1.3))
    >>> [row.effect for row in found.rows[:3]]
    ['rounding', 'rounding', 'rounding']
    >>> abs(found.predicted - found.error) < 0.1 * abs(found.error)
    True
    """

    def __init__(
        self,
        outputs: Any,
        policy: str,
        found: Found,
        steps: Sequence[Step],
        digits: Mapping[int, Digits],
        finding: Finding | None,
    ) -> None:
        self.outputs = outputs
        self.policy = policy
        self._found = found
        self._steps = steps
        self._digits = digits
        self._finding = finding

    @property
    def error(self) -> float:
        """The narrow result less the reference if it is one number, and `relative_error` if there are several."""
        return self._found.measured.error

    @property
    def relative_error(self) -> float:
        """The norm of the difference between the narrow result and the reference, relative to that of the reference."""
        return self._found.measured.relative

    @property
    def is_number(self) -> bool:
        """Whether the error is that of one number."""
        return self._found.measured.is_number

    @property
    def predicted(self) -> float:
        """The sum of all shares, which is the error to first order."""
        return float(sum(self._found.shares[step.number][Share.SIGNED] for step in self._steps))

    @property
    def bound(self) -> float:
        """The sum of all bounds."""
        return float(sum(self._found.shares[step.number][Share.ABSOLUTE] for step in self._steps))

    @property
    def change(self) -> Change | None:
        """The change that was tried; None if there is no error."""
        return None if self._finding is None else self._finding.change

    @cached_property
    def rows(self) -> tuple[AttributionRow, ...]:
        """A row for each operation, those that are most to blame first."""
        origins, sources = Origins(), Sources()
        return tuple(self._row(step, origins, sources) for step in self._steps)

    def _row(self, step: Step, origins: Origins, sources: Sources) -> AttributionRow:
        origin = origins.of(step.site)
        place = origin.place
        facts, shares, digits = (
            self._found.facts[step.number],
            self._found.shares[step.number],
            self._digits[step.number],
        )
        in_loop = any(caller.primitive.name == "while" for caller in step.site.callers)
        avals = [aval_of(var) for var in step.equation.outvars if is_floating(aval_of(var))]
        return AttributionRow(
            "" if place is None else place.file,
            0 if place is None else place.line,
            "" if place is None else sources.text(place),
            step.site.path,
            step.name,
            tuple(map(type_text, avals)),
            origin.backward,
            int(facts[Fact.RUNS]),
            None if in_loop else float(shares[Share.SIGNED]),
            None if in_loop else float(shares[Share.ABSOLUTE]),
            float(np.sqrt(facts[Fact.LOCAL_SQUARED] / max(facts[Fact.VALUES], 1))),
            digits.relative_in,
            digits.relative_out,
            None if in_loop else float(shares[Share.THROUGH]),
            str(digits.effect),
            _NO_DERIVATIVE if in_loop else in_words(step, digits, self._found),
        )

    def __len__(self) -> int:
        return len(self._steps)

    def by(self, key: str) -> dict[str, AttributionTotal]:
        """The shares of all operations of a line, scope or primitive together, the largest first.

        Args:
            key: `"line"`, `"scope"` or `"primitive"`.

        Raises:
            UnknownNameError: for another key.
        """
        name = _KEYS[chosen("key of an attribution", key, _KEYS)]
        groups: dict[str, list[AttributionRow]] = {}
        for row in self.rows:
            groups.setdefault(name(row), []).append(row)
        totals = {
            each: AttributionTotal(
                sum(row.estimate or 0.0 for row in rows), sum(row.bound or 0.0 for row in rows), len(rows)
            )
            for each, rows in groups.items()
        }
        return dict(sorted(totals.items(), key=lambda item: abs(item[1].estimate), reverse=True))

    @property
    def sentence(self) -> str:
        """The line that is most to blame, what it does to the digits, and the change that was tried."""
        if self.error == 0:
            return f"The result {self._under} is the same as in float64."
        if self.change is None:
            return f"No operation explains the error of {_error(self.error)}."
        row = self.rows[0]
        text = row.expression if len(row.expression) <= 60 else f"{row.expression[:57]}..."
        code = f" `{text}`" if text else f" {row.primitive}"
        place = places_of(self.rows)[row.where]
        others, error = self.change.others, _error(self.change.error)
        verb = "follow" if self.change.follows else "feed"
        which = f"the {others} operations that {verb} it" if others > 1 else f"the operation that {verb}s it"
        feeding = f", with {which}," if others else ""
        if not math.isfinite(self.change.error) and not math.isfinite(self.error):
            tried = f"In {self.change.dtype}{feeding} the error is still not finite."
        elif error == _error(self.error):
            tried = f"In {self.change.dtype}{feeding} the error stays {error}."
        else:
            tried = f"In {self.change.dtype}{feeding} the error is {error} instead of {_error(self.error)}."
        return f"{place}{code}: {row.words}. {tried}"

    def to_dict(self) -> dict[str, Any]:
        """The attribution as plain data for JSON, without the outputs; infinite numbers are None."""
        change = self.change
        return {
            "policy": self.policy,
            "sentence": self.sentence,
            "error": _finite(self.error),
            "relative_error": _finite(self.relative_error),
            "predicted": _finite(self.predicted),
            "bound": _finite(self.bound),
            "change": None
            if change is None
            else {"dtype": change.dtype, "others": change.others, "error": _finite(change.error)},
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The attribution as JSON.

        Args:
            indent: as for `json.dumps`.
        """
        return json.dumps(self.to_dict(), indent=indent)

    @property
    def _under(self) -> str:
        return f"under {self.policy}" if self.policy != DECLARED else "in the declared dtypes"

    @property
    def title(self) -> str:
        """The error, measured and predicted, in one sentence."""
        if not math.isfinite(self.relative_error):
            return f"The error {self._under} is not finite, so the operations have no shares of it."
        if self.is_number:
            measured = f"{_error(self.error)} ({self.relative_error:.2g} of the result)"
        else:
            measured = f"{self.relative_error:.2g} of the norm of the results"
        return (
            f"The error {self._under} is {measured}; the operations together predict {_error(self.predicted)}, "
            f"and at most {self.bound:.2g}."
        )

    def __repr__(self) -> str:
        return f"Attribution({len(self)} operations, {self.policy}, error {_error(self.error)})"

    def __str__(self) -> str:
        width = shutil.get_terminal_size().columns
        kept = [row for place, row in enumerate(self.rows) if not place or row.estimate is None or row.bound]
        shown = kept[:_SHOWN]
        more = [f"... and {len(kept) - len(shown)} more"] if len(kept) > len(shown) else []
        head = [line for each in (self.sentence, self.title) for line in textwrap.wrap(each, width)]
        table = aligned(fitted(_lines(shown, self), width, 1), right=_RIGHT)
        return "\n".join([*head, "", table, *more])

    def to_svg(self, lines: int = 20) -> str:
        """Draw the shares of source lines as bars, as a self-contained SVG.

        Args:
            lines: the most lines to draw, those with the largest shares.
        """
        totals = self.by("line")
        count = whole_number("lines", lines, 1, _MOST_DRAWN)
        places = places_of(self.rows)
        texts = {row.where: row.expression or row.primitive for row in reversed(self.rows)}
        drawn = [
            Bar(places[where], texts[where], total.estimate, total.bound)
            for where, total in list(totals.items())[:count]
            if total.bound
        ]
        return bars_picture(f"Error {self._under}", [self.sentence, self.title], drawn)

    def _repr_html_(self) -> str:
        return columns_to_html(f"{self.sentence} {self.title}", _lines(self.rows, self), right=_RIGHT)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _error(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "not finite"


def places_of(rows: Iterable[AttributionRow]) -> dict[str, str]:
    """Map the line of each row to a short form: only the file's name where that is clear."""
    rows = tuple(rows)
    names = Counter(Path(file).name for file in {row.file for row in rows})
    return {
        row.where: f"{Path(row.file).name}:{row.line}" if row.file and names[Path(row.file).name] == 1 else row.where
        for row in rows
    }


_HEADINGS = ("line", "expression", "operation", "type", "runs", "share", "at most", "effect")
_RIGHT = frozenset({4, 5, 6})


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


def _lines(rows: Sequence[AttributionRow], found: Attribution) -> list[tuple[str, ...]]:
    places = places_of(rows)
    return [
        _HEADINGS,
        *(
            (
                places[row.where],
                row.expression,
                row.primitive,
                row.types[0] if len(row.types) == 1 else f"{row.types[0]}, ...",
                str(row.runs),
                percent_of(row.estimate, found.error),
                percent_of(row.bound, abs(found.error)),
                effect_of(row, found.error),
            )
            for row in rows
        ),
    ]
