"""The page of origins: the operations that make NaNs and infinities, and whether these reach the results."""

from __future__ import annotations

from collections.abc import Mapping

from supremum.numerics.nonfinite_origins import NonfiniteOrigins
from supremum.numerics.nonfinite_rows import BadSource, NonfiniteOrigin, details_of, made_of, name_of_source
from supremum.reports import (
    PageGroup,
    PageRow,
    PageSection,
    operation_row,
    report_page,
    short_names,
    short_place,
    source_lines,
)

_ORDERS = "what matters most", "order of execution", "number of runs"


def nonfinite_page(origins: Mapping[str, NonfiniteOrigins]) -> str:
    """Make a self-contained page of origins, to sort and filter, in light and dark; it needs no network.

    Args:
        origins: the origins by the names of the functions.

    Returns:
        The page as HTML.

    Raises:
        OperandError: for anything but origins by name; a `TypeError`.
        MissingPackageError: without Jinja2, which `supremum[cli]` installs.

    >>> import jax.numpy as jnp
    >>> from supremum import numerics
    >>> origins = numerics.first_nonfinite(lambda x: jnp.log(x))(jnp.array([0.0, 1.0]))
    >>> page = numerics.nonfinite_page({"entropy": origins})
    >>> "<h2>entropy</h2>" in page, "the logarithm of zero" in page
    (True, True)
    """
    return report_page(
        "origins",
        origins,
        NonfiniteOrigins,
        _section,
        title="NaNs and infinities",
        subtitle="Which operations make them, and which of them reach the result.",
        call="numerics.first_nonfinite(loss)(w, x)",
        placeholder="log",
        orders=_ORDERS,
    )


def _section(origins: NonfiniteOrigins) -> PageSection:
    names = short_names(row.file for row in (*origins, *origins.sources))
    reached_first = sorted(enumerate(origins), key=lambda pair: not pair[1].reached_output)
    rows = [_row(origin, names, rank, place) for rank, (place, origin) in enumerate(reached_first)]
    rows += [_source_row(source, names, rank) for rank, source in enumerate(origins.sources, len(rows))]
    bad = made_of(*origins.bad_outputs)
    totals = [(f"the result has {bad}", "bad") if bad else ("the result is finite", "good")]
    return PageSection(f"{origins.title}.", [PageGroup("", rows)], totals)


def _row(origin: NonfiniteOrigin, names: Mapping[str, str], rank: int, place: int) -> PageRow:
    reached = {
        True: ("reached the result", "bad"),
        False: ("did not reach the result", "good"),
        None: ("not known if it reached the result", "warning"),
    }
    facts: list[tuple[str, str | list[str]]] = [("made", made_of(origin.nans, origin.infinities) or origin.kind)]
    if origin.cause:
        facts.append(("cause", origin.cause))
    if origin.operands:
        facts.append(("operands", [str(operand) for operand in origin.operands]))
    return operation_row(
        origin,
        names,
        "; ".join([origin.cause or origin.primitive, *details_of(origin)[1:]]),
        marks=[("NaN" if origin.kind == "nan" else "infinity", ""), reached[origin.reached_output]],
        keys=(-rank, -place, origin.runs),
        facts=facts,
        fixes=[[origin.fix]] if origin.fix else (),
    )


def _source_row(source: BadSource, names: Mapping[str, str], rank: int) -> PageRow:
    return PageRow(
        short_place(names, source),
        source.expression,
        f"{name_of_source(source)} came in with {made_of(source.nans, source.infinities)}",
        [("source", ""), ("reached the result", "bad") if source.reached_output else ("did not reach it", "good")],
        {"File": names[source.file], "Scope": "", "Operation": source.kind, "Pass": "forward"},
        (-rank, -rank, 0),
        source_lines(source.file, source.line, None),
        [("type", source.type)],
    )
