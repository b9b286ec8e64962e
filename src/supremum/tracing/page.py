"""The page of `supremum casts -o casts.html`: what widened first, what follows, the source lines and the fixes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from supremum.argument_checks import instance, mapping, text
from supremum.errors import shown as shown_value
from supremum.extras import require
from supremum.render import icon_link, page_part
from supremum.tracing.cast import CLASSES, OR, Cast
from supremum.tracing.causes import Cause, plural
from supremum.tracing.report import CastReport, places_of
from supremum.tracing.sizes import shown
from supremum.tracing.source_context import source_lines


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
    require("The page of casts", "jinja2")
    from jinja2 import Environment  # from the extra "cli"

    for name, report in mapping("reports", reports, "{'loss': tracing.casts(loss)(w, x)}").items():
        text("each name in reports", name)
        instance(
            f"reports[{shown_value(name)}]", report, CastReport, "a CastReport, as tracing.casts(loss)(w, x) returns"
        )
    folder = files("supremum.tracing")
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        (folder / "page.html.j2").read_text("utf-8")
    )
    casts = [cast for report in reports.values() for cast in report]
    return template.render(
        functions=[_function(name, report) for name, report in reports.items()],
        classes=[kind for kind in CLASSES if any(cast.kind == kind for cast in casts)],
        files=sorted({cast.file for cast in casts if cast.file}),
        libraries=sorted({cast.library for cast in casts if cast.library}),
        icon=icon_link(),
        style=page_part("shared.css") + page_part("source.css") + (folder / "page.css").read_text("utf-8"),
        script=page_part("theme.js") + (folder / "page.js").read_text("utf-8"),
        version=version("supremum"),
    )


def _function(name: str, report: CastReport) -> dict[str, Any]:
    places = places_of(report.casts)
    sections = {title: _rows(found, places) for title, found in report.sections.items()}
    return {
        "name": name,
        "title": report.title,
        "causes": [_cause(cause, places) for cause in report.causes],
        "steps": sections["steps of libraries"],
        "asked": sections["asked for"],
        "conversions": sections["conversions"],
        "conversions_line": report.conversions,
        "lines": [(places[at], total.casts, shown(total.bytes)) for at, total in report.by_line.items()],
        "totals": [(kind, total.casts, shown(total.bytes)) for kind, total in report.by_class.items()],
    }


def _cause(cause: Cause, places: Mapping[str, str]) -> dict[str, Any]:
    hides = [
        {
            "where": places[hidden.where],
            "expression": hidden.expression,
            "choices": hidden.fix.split(OR),
            "source": source_lines(hidden.at.file, hidden.at.line, hidden.at.end_line, hidden.at),
        }
        for hidden in cause.hides
    ]
    costs = list(map("".join, cause.costs))
    row = _row(cause.casts, places) | {
        "costs": costs,
        "change": cause.change,
        "fixes": [fix.split(OR) for fix in cause.fixes],
    }
    return row | {"hides": hides, "follow": _rows(cause.follow, places), "count": plural(len(cause.follow), "cast")}


def _rows(casts: Sequence[Cast], places: Mapping[str, str]) -> list[dict[str, Any]]:
    """One row for all casts of an expression to the same dtype."""
    groups: dict[Hashable, list[Cast]] = {}
    for cast in casts:
        groups.setdefault((cast.place, cast.kind, cast.source, cast.target), []).append(cast)
    return [_row(group, places) for group in groups.values()]


def _row(casts: Sequence[Cast], places: Mapping[str, str]) -> dict[str, Any]:
    first = casts[0]
    shapes = dict.fromkeys(f"[{','.join(map(str, cast.shape))}]" for cast in casts)
    at = first.path[-1][0] if first.path else None
    return {
        "kind": first.kind,
        "category": first.category,
        "file": first.file,
        "library": first.library,
        "where": places[first.where],
        "expression": first.expression,
        "change": f"{first.source} -> {first.target}",
        "count": plural(len(casts), "cast"),
        "bytes": shown(sum(cast.total_bytes for cast in casts)),
        "shapes": ", ".join(shapes),
        "reason": first.reason,
        "operands": first.operands,
        "asked_for": None
        if first.asked_for is None
        else f"{places[first.asked_for.where]}: {first.asked_for.expression}",
        "fixes": [first.fix.split(OR)] if first.fix else [],
        "source": source_lines(first.file, first.line, first.line if at is None else at.end_line, at),
        "calls": [(f"{Path(at.file).name}:{at.line}", at.function, text) for at, text in reversed(first.path[:-1])],
    }
