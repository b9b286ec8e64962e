"""The page and the picture of profiles: the operations, what formats would do to them, and their exponents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from supremum.argument_checks import instance, mapping, text
from supremum.errors import shown
from supremum.extras import require
from supremum.formats import Format
from supremum.numerics.pictures import exponents
from supremum.numerics.report import Profile, ProfileRow, places_of
from supremum.numerics.value_counts import ValueCounts
from supremum.numerics.wording import every, not_finite
from supremum.render import (
    PageRow,
    PageSection,
    axis_of,
    exponents_to_html,
    legend_to_html,
    rows_page,
)
from supremum.tracing import source_lines

_ORDERS = ("what hurts most", "overflow", "flushed to zero", "subnormal", "number of values", "largest magnitude")


def profile_page(profiles: Mapping[str, Profile]) -> str:
    """Make a self-contained page of profiles, to sort and filter, in light and dark; it needs no network.

    Args:
        profiles: the profiles by the names of the functions.

    Returns:
        The page as HTML.

    Raises:
        OperandError: for anything but profiles by name; a `TypeError`.
        MissingPackageError: without Jinja2, which `supremum[cli]` installs.

    >>> import jax.numpy as jnp
    >>> from supremum import numerics
    >>> found = numerics.profile(lambda x: jnp.exp(x), ["float16"])(
    ...     jnp.array([1.0, 12.0])
    ... )
    >>> page = numerics.profile_page({"power": found})
    >>> "<h2>power</h2>" in page, "50% overflow to inf" in page
    (True, True)
    """
    require("The page of profiles", "jinja2")
    for name, each in mapping("profiles", profiles, "{'loss': numerics.profile(loss)(w, x)}").items():
        text("each name in profiles", name)
        instance(f"profiles[{shown(name)}]", each, Profile, "a Profile, as numerics.profile(loss)(w, x) returns")
    return rows_page(
        "Profile",
        "What number formats would do to the values of each operation.",
        [_section(name, each) for name, each in profiles.items()],
        orders=_ORDERS,
        placeholder="exp",
        empty="No jitted function was called.",
    )


def _section(name: str, profile: Profile) -> PageSection:
    rows = profile.rows
    places = places_of(rows)
    drawings = {id(row): exponents(row.values, profile.formats) for row in rows}
    axis = axis_of(drawings.values())
    has_histogram = any(row.values.exponents is not None for row in rows)
    found: list[PageRow] = []
    for row in rows:
        values, drawn = row.values, drawings[id(row)]
        at = row.path[-1] if row.path else None
        panel = picture = ""
        if values.exponents:
            picture, panel = exponents_to_html(drawn, axis, spans=False), exponents_to_html(drawn, axis)
        found.append(
            PageRow(
                places[row.where],
                row.expression,
                _summary(row),
                _marks(values, profile.formats),
                {
                    "File": Path(row.file).name,
                    "Scope": row.scope,
                    "Operation": row.primitive,
                    "Pass": "backward" if row.backward else "forward",
                },
                _keys(len(found), values),
                source_lines(row.file, row.line, row.line if at is None else at.end_line, at),
                _facts(row, profile.formats),
                picture=picture,
                panel=panel,
            )
        )
    return PageSection(
        name,
        f"{profile.title}.",
        _totals(rows, profile.formats),
        rows=found,
        legend=legend_to_html() if has_histogram else "",
    )


def _keys(place: int, values: ValueCounts) -> tuple[float, ...]:
    shares = [sum(each) for each in zip(*(each.shares for each in values.formats.values()), strict=True)] or [0.0] * 3
    return -place, *shares, values.values, values.largest or 0.0


def _summary(row: ProfileRow) -> str:
    values = row.values
    parts = [row.primitive, *([row.scope] if row.scope else []), *(["backward"] if row.backward else [])]
    parts.append(f"{values.runs:,} run{'' if values.runs == 1 else 's'}, {values.values:,} values")
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


def _facts(row: ProfileRow, formats: Sequence[Format]) -> list[tuple[str, str | Sequence[str]]]:
    values = row.values
    facts: list[tuple[str, str | Sequence[str]]] = [("result", ", ".join(row.types))]
    facts += [
        (each.name, every(values.formats[each.name]) or "holds all finite values as normal numbers") for each in formats
    ]
    if values.zeros:
        facts.append(("zeros", f"{values.zeros:,} of {values.values:,}"))
    if values.nans or values.infinities:
        facts.append(("not finite", f"{values.nans:,} NaN, {values.infinities:,} infinite"))
    if row.path[1:]:
        calls = [f"{Path(at.file).name}:{at.line} {at.function}" for at in reversed(row.path[:-1])]
        facts.append(("called from", calls))
    return facts
