"""The page of `supremum casts -o casts.html`: what widened first, what follows, the source lines and the fixes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from supremum.reports import PageGroup, PageRow, PageSection, plural, report_page, short_place, source_lines
from supremum.tracing.cast import OR, Cast
from supremum.tracing.causes import Cause
from supremum.tracing.report import CastReport, names_of
from supremum.tracing.sizes import shape_text, size_text

_STYLES: dict[str, str] = {
    "promotion": "bad", "conversion": "neutral", "explicit": "good", "library": "neutral", "autocast": "own",
    "unknown": "warning",
}  # fmt: skip


def casts_page(reports: Mapping[str, CastReport]) -> str:
    """Make a self-contained page of reports, with filters, in light and dark; it needs no network.

    Args:
        reports: the reports by the names of the functions.

    Returns:
        The page as HTML.

    Raises:
        OperandError: for anything but reports by name; a `TypeError`.
        MissingPackageError: without Jinja2, which `supremum[cli]` installs.

    >>> import jax.numpy as jnp
    >>> from supremum import tracing
    >>> report = tracing.casts(lambda x, w: x * w)(jnp.ones(4, "bfloat16"), jnp.ones(4))
    >>> page = tracing.casts_page({"scale": report})
    >>> "<h2>scale</h2>" in page, "to stay in bfloat16" in page
    (True, True)
    """
    return report_page(
        "reports",
        reports,
        CastReport,
        _section,
        title="Casts",
        subtitle="What each program converts, and the line that caused it.",
        call="tracing.casts(loss)(w, x)",
        placeholder="bfloat16",
    )


def _section(report: CastReport) -> PageSection:
    names = names_of(report.casts)
    rows = {title: _rows(casts, names) for title, casts in report.sections.items()}
    lines = report.line_totals()
    groups = [
        PageGroup("What widened first", [_cause(cause, names) for cause in report.causes]),
        PageGroup(report.conversions, rows["conversions"], is_folded=True),
        PageGroup("Steps of libraries", rows["steps of libraries"]),
        PageGroup("Asked for", rows["asked for"]),
        PageGroup("Totals by line", is_folded=True, table=lines if report.casts else ()),
    ]
    totals = [
        (f"{each.casts} {kind}, {size_text(each.bytes)} bytes", _STYLES[kind]) for kind, each in report.by_class.items()
    ]
    return PageSection(report.title, groups, totals)


def _cause(cause: Cause, names: Mapping[str, str]) -> PageRow:
    row = _row(cause.casts, names)
    hidden = [
        PageRow(
            short_place(names, each.at),
            each.expression,
            "would promote",
            facets=row.facets,
            source=source_lines(each.at.file, each.at.line, each.at),
            fixes=[each.fix.split(OR)],
        )
        for each in cause.hides
    ]
    follow = f"{plural(len(cause.follow), 'cast')} that follow{'s' * (len(cause.follow) == 1)}"
    return replace(
        row,
        summary=cause.change,
        facts=[*(("cost", "".join(cost)) for cost in cause.costs), *row.facts],
        fixes=[fix.split(OR) for fix in cause.fixes],
        groups=[
            PageGroup("With that fixed, these would promote", hidden),
            PageGroup(follow, _rows(cause.follow, names), is_folded=True),
        ],
        is_open=True,
    )


def _rows(casts: Iterable[Cast], names: Mapping[str, str]) -> list[PageRow]:
    """One row for all casts of an expression to the same dtype."""
    groups: dict[Hashable, list[Cast]] = {}
    for cast in casts:
        groups.setdefault((cast.place, cast.kind, cast.source, cast.target), []).append(cast)
    return [_row(group, names) for group in groups.values()]


def _row(casts: Sequence[Cast], names: Mapping[str, str]) -> PageRow:
    first = casts[0]
    size = size_text(sum(cast.total_bytes for cast in casts))
    return PageRow(
        short_place(names, first),
        first.expression,
        f"{first.source} -> {first.target}, {plural(len(casts), 'cast')}, {size} bytes",
        [(first.category, _STYLES[first.kind])],
        {"Class": first.kind, "File": names[first.file], "Library": first.library},
        source=source_lines(first.file, first.line, first.path[-1][0] if first.path else None),
        facts=_facts(first, dict.fromkeys(shape_text(cast.shape) for cast in casts), names),
        fixes=[first.fix.split(OR)] if first.fix else [],
    )


def _facts(cast: Cast, shapes: Iterable[str], names: Mapping[str, str]) -> list[tuple[str, str | Sequence[str]]]:
    facts: list[tuple[str, str | Sequence[str]]] = [("reason", cast.reason)]
    if cast.asked_for is not None:
        facts.append(("because", f"{short_place(names, cast.asked_for)}: `{cast.asked_for.expression}`"))
    if cast.operands:
        facts.append(("operands", [f"`{each}`" for each in cast.operands]))
    facts.append(("shapes", ", ".join(shapes)))
    calls = [f"{Path(str(at)).name} {at.function}: `{text}`" for at, text in reversed(cast.path[:-1])]
    if calls:
        facts.append(("called from", calls))
    return facts
