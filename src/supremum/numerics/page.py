"""The page and the picture of profiles: the operations, what formats would do to them, and their exponents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from supremum.formats import Format
from supremum.numerics.pictures import exponents
from supremum.numerics.report import Profile, ProfileRow
from supremum.numerics.value_counts import ValueCounts
from supremum.numerics.wording import every, not_finite
from supremum.reports import (
    PageGroup,
    PageSection,
    axis_of,
    exponents_to_html,
    legend_to_html,
    operation_row,
    plural,
    report_page,
    short_names,
)

_ORDERS = ("what hurts most", "overflow", "flushed to zero", "subnormal", "number of values", "largest magnitude")


def profile_page(profiles: Mapping[str, Profile]) -> str:
    """Make a self-contained page of profiles, to sort and filter, in light and dark; it needs no network.

    Args:
        profiles: the profiles by the names of the functions; those made with `histogram=True` show histograms.

    Returns:
        The page as HTML.

    Raises:
        OperandError: for anything but profiles by name; a `TypeError`.
        MissingPackageError: without Jinja2, which `supremum[cli]` installs.

    >>> import jax.numpy as jnp
    >>> from supremum import numerics
    >>> report = numerics.profile(lambda x: jnp.exp(x), ["float16"])(
    ...     jnp.array([1.0, 12.0])
    ... )
    >>> page = numerics.profile_page({"power": report})
    >>> "<h2>power</h2>" in page, "50% overflow to inf" in page
    (True, True)
    """
    return report_page(
        "profiles",
        profiles,
        Profile,
        _section,
        title="Profile",
        subtitle="What number formats would do to the values of each operation.",
        call="numerics.profile(loss)(w, x)",
        placeholder="exp",
        orders=_ORDERS,
    )


def _section(profile: Profile) -> PageSection:
    rows, formats = profile.rows, profile.formats
    names = short_names(row.file for row in rows)
    drawings = [exponents(row.values, formats) for row in rows]
    axis = axis_of(drawings)
    page_rows = [
        operation_row(
            row,
            names,
            _summary(row),
            marks=_marks(row.values, formats),
            keys=_keys(place, row.values),
            facts=_facts(row, formats),
            picture=exponents_to_html(drawing, axis) if row.values.exponents else "",
        )
        for place, (row, drawing) in enumerate(zip(rows, drawings, strict=True))
    ]
    has_histogram = any(row.values.exponents is not None for row in rows)
    legend = legend_to_html() if has_histogram else ""
    return PageSection(f"{profile.title}.", [PageGroup("", page_rows)], _totals(rows, formats), legend=legend)


def _keys(place: int, values: ValueCounts) -> tuple[float, ...]:
    _, _, *shares = values.severity
    shares = shares or [0.0, 0.0, 0.0]  # without formats
    return -place, *shares, values.values, values.largest or 0.0


def _summary(row: ProfileRow) -> str:
    values = row.values
    parts = [row.primitive, *([row.scope] if row.scope else []), *(["backward"] if row.backward else [])]
    parts.append(f"{plural(values.runs, 'run')}, {values.values:,} values")
    if values.least is not None and values.largest is not None:
        parts.append(f"{values.least:.2g} to {values.largest:.2g}")
    return ", ".join(parts)


def _marks(values: ValueCounts, formats: Sequence[Format]) -> list[tuple[str, str]]:
    bad = not_finite(values)
    marks = [(bad, "bad")] if bad else []
    for each in formats:
        counts = values.formats[each.name]
        if counts.overflow:
            marks.append((f"{each.short_name} overflows", "bad"))
        elif counts.flushed:
            marks.append((f"{each.short_name} loses small values", "warning"))
    return marks


def _totals(rows: Sequence[ProfileRow], formats: Sequence[Format]) -> list[tuple[str, str]]:
    totals: list[tuple[str, str]] = []
    for each in formats:
        counts = [row.values.formats[each.name] for row in rows]
        over, lost = sum(one.overflow > 0 for one in counts), sum(one.flushed > 0 for one in counts)
        said = [f"{over} overflow" if over else "", f"{lost} flush to zero" if lost else ""]
        style = "bad" if over else "warning" if lost else "good"
        totals.append((f"{each.name}: {', '.join(filter(None, said)) or 'all values fit'}", style))
    return totals


def _facts(row: ProfileRow, formats: Sequence[Format]) -> list[tuple[str, str]]:
    values = row.values
    facts = [("result", ", ".join(row.types))]
    facts += [
        (each.name, every(values.formats[each.name]) or "holds all finite values as normal numbers") for each in formats
    ]
    if values.zeros:
        facts.append(("zeros", f"{values.zeros:,} of {values.values:,}"))
    if values.nans or values.infinities:
        facts.append(("not finite", f"{values.nans:,} NaN, {values.infinities:,} infinite"))
    return facts
