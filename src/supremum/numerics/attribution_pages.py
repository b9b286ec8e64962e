"""The page of attributions: the operations, and their shares of the error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from supremum.argument_checks import instance, mapping, text
from supremum.errors import shown
from supremum.extras import require
from supremum.numerics.attribution_report import Attribution, AttributionRow, effect_of, percent_of, places_of
from supremum.numerics.diagnosis import Effect, power
from supremum.render import PageRow, PageSection, rows_page
from supremum.tracing import source_lines

_ORDERS = ("most to blame", "share of the error", "most it could be", "relative error of the result", "number of runs")


def attribution_page(attributions: Mapping[str, Attribution]) -> str:
    """Make a self-contained page of attributions, to sort and filter, in light and dark; it needs no network.

    Args:
        attributions: the attributions by the names of the functions.

    Returns:
        The page as HTML.

    Raises:
        OperandError: for anything but attributions by name; a `TypeError`.
        MissingPackageError: without Jinja2, which `supremum[cli]` installs.

    >>> import jax.numpy as jnp
    >>> from supremum import numerics
    >>> found = numerics.attribute(lambda x: jnp.sum(x + 1e-3), "declared")(
    ...     jnp.ones(4, "bfloat16")
    ... )
    >>> page = numerics.attribution_page({"total": found})
    >>> "<h2>total</h2>" in page, "absorbed addition" in page
    (True, True)
    """
    require("The page of attributions", "jinja2")
    for name, each in mapping("attributions", attributions, "{'loss': numerics.attribute(loss)(w, x)}").items():
        text("each name in attributions", name)
        instance(
            f"attributions[{shown(name)}]", each, Attribution, "an Attribution, as numerics.attribute(f)(x) returns"
        )
    return rows_page(
        "Attribution",
        "Which operations the error of a result comes from.",
        [_section(name, each) for name, each in attributions.items()],
        orders=_ORDERS,
        placeholder="mean",
        empty="No jitted function was called.",
    )


def _section(name: str, found: Attribution) -> PageSection:
    kept = [row for place, row in enumerate(found.rows) if not place or row.estimate is None or row.bound]
    places = places_of(kept)
    rows: list[PageRow] = []
    for row in kept:
        share = percent_of(row.estimate, found.error)
        rows.append(
            PageRow(
                places[row.where],
                row.expression,
                f"{row.primitive}, {', '.join(row.types)}, {row.runs:,} run{'s' * (row.runs != 1)}",
                [("no derivative" if row.estimate is None else f"{share} of the error", _style(row, found)),
                 *([] if row.effect == Effect.ROUNDING else [(effect_of(row, found.error), "warning")])],
                {
                    "File": Path(row.file).name,
                    "Scope": row.scope,
                    "Operation": row.primitive,
                    "Effect": row.effect,
                    "Pass": "backward" if row.backward else "forward",
                },
                _keys(len(rows), row),
                source_lines(row.file, row.line, row.line, None),
                _facts(row, found),
            )
        )  # fmt: skip
    totals = [(f"measured error: {_short(found.error)}", "")]
    if math.isfinite(found.error):
        totals.append((f"sum of the shares: {_short(found.predicted)}", ""))
    if found.change is not None:
        totals.append((f"after the change: {_short(found.change.error)}", "good"))
    return PageSection(name, found.sentence, totals, [found.title], rows)


def _short(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "not finite"


def _style(row: AttributionRow, found: Attribution) -> str:
    if row.estimate is None or not math.isfinite(found.error):
        return ""
    return "bad" if abs(row.estimate) >= 0.3 * abs(found.error) else ""


def _keys(place: int, row: AttributionRow) -> tuple[float, ...]:
    relative = row.relative_out if math.isfinite(row.relative_out) else 1e300
    return -place, abs(row.estimate or 0.0), row.bound or 0.0, relative, row.runs


def _facts(row: AttributionRow, found: Attribution) -> list[tuple[str, str]]:
    facts = [("effect", f"{row.words[0].upper()}{row.words[1:]}."), ("result", ", ".join(row.types))]
    if row.estimate is not None and row.bound is not None:
        facts.append(
            ("share", f"{row.estimate:.3g} ({percent_of(row.estimate, found.error)}), at most {row.bound:.3g}")
        )
    facts.append(("own error", f"{row.local_error:.3g}, root mean square"))
    facts.append(("relative error", f"{power(row.relative_in)} in, {power(row.relative_out)} out"))
    return facts
