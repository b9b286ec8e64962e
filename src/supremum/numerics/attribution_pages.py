"""The page of attributions: the operations, and their shares of the error."""

from __future__ import annotations

import math
from collections.abc import Mapping

from supremum.numerics.attribution_report import Attribution, AttributionRow, effect_of, error_text, percent_of
from supremum.numerics.diagnosis import Effect, power
from supremum.reports import PageGroup, PageSection, operation_row, plural, report_page, short_names

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
    >>> report = numerics.attribute(lambda x: jnp.sum(x + 1e-3), "declared")(
    ...     jnp.ones(4, "bfloat16")
    ... )
    >>> page = numerics.attribution_page({"total": report})
    >>> "<h2>total</h2>" in page, "absorbed addition" in page
    (True, True)
    """
    return report_page(
        "attributions",
        attributions,
        Attribution,
        _section,
        title="Attribution",
        subtitle="Which operations the error of a result comes from.",
        call="numerics.attribute(loss)(w, x)",
        placeholder="mean",
        orders=_ORDERS,
    )


def _section(attribution: Attribution) -> PageSection:
    names = short_names(row.file for row in attribution.rows)
    rows = [
        operation_row(
            row,
            names,
            f"{row.primitive}, {', '.join(row.types)}, {plural(row.runs, 'run')}",
            marks=_marks(row, attribution),
            facets={"Effect": row.effect},
            keys=_keys(place, row),
            facts=_facts(row, attribution),
        )
        for place, row in enumerate(attribution.blamed)
    ]
    totals = [(f"measured error: {error_text(attribution.error)}", "")]
    if math.isfinite(attribution.error):
        totals.append((f"sum of the shares: {error_text(attribution.predicted)}", ""))
    if attribution.change is not None:
        totals.append((f"after the change: {error_text(attribution.change.error)}", "good"))
    return PageSection(f"{attribution.sentence} {attribution.title}", [PageGroup("", rows)], totals)


def _marks(row: AttributionRow, attribution: Attribution) -> list[tuple[str, str]]:
    share = "no derivative" if row.estimate is None else f"{percent_of(row.estimate, attribution.error)} of the error"
    marks = [(share, _style(row, attribution))]
    if row.effect != Effect.ROUNDING:
        marks.append((effect_of(row, attribution.error), "warning"))
    return marks


def _style(row: AttributionRow, attribution: Attribution) -> str:
    if row.estimate is None or not math.isfinite(attribution.error):
        return ""
    return "bad" if abs(row.estimate) >= 0.3 * abs(attribution.error) else ""


def _keys(place: int, row: AttributionRow) -> tuple[float, ...]:
    relative = row.relative_out if math.isfinite(row.relative_out) else 1e300
    return -place, abs(row.estimate or 0.0), row.bound or 0.0, relative, row.runs


def _facts(row: AttributionRow, attribution: Attribution) -> list[tuple[str, str]]:
    facts = [("effect", f"{row.words[0].upper()}{row.words[1:]}."), ("result", ", ".join(row.types))]
    if row.estimate is not None and row.bound is not None:
        facts.append(
            ("share", f"{row.estimate:.3g} ({percent_of(row.estimate, attribution.error)}), at most {row.bound:.3g}")
        )
    facts.append(("own error", f"{row.local_error:.3g}, root mean square"))
    facts.append(("relative error", f"{power(row.relative_in)} in, {power(row.relative_out)} out"))
    return facts
