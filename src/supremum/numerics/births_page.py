"""The page of births: the operations that make NaNs and infinities, and whether these reach the results."""

from __future__ import annotations

from collections.abc import Mapping

from supremum.numerics.birth_rows import BadSource, Birth, details_of, made_of, name_of_source
from supremum.numerics.births import Births
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


def births_page(births: Mapping[str, Births]) -> str:
    """Make a self-contained page of births, to sort and filter, in light and dark; it needs no network.

    Args:
        births: the births by the names of the functions.

    Returns:
        The page as HTML.

    Raises:
        OperandError: for anything but births by name; a `TypeError`.
        MissingPackageError: without Jinja2, which `supremum[cli]` installs.

    >>> import jax.numpy as jnp
    >>> from supremum import numerics
    >>> found = numerics.first_nonfinite(lambda x: jnp.log(x))(jnp.array([0.0, 1.0]))
    >>> page = numerics.births_page({"entropy": found})
    >>> "<h2>entropy</h2>" in page, "the logarithm of zero" in page
    (True, True)
    """
    return report_page(
        "births",
        births,
        Births,
        _section,
        title="NaNs and infinities",
        subtitle="Where they are born, and which of them reach the result.",
        call="numerics.first_nonfinite(loss)(w, x)",
        placeholder="log",
        orders=_ORDERS,
    )


def _section(births: Births) -> PageSection:
    names = short_names(row.file for row in (*births, *births.sources))
    by_fate = sorted(enumerate(births), key=lambda pair: not pair[1].reached_output)
    rows = [_row(birth, names, rank, place) for rank, (place, birth) in enumerate(by_fate)]
    rows += [_source_row(source, names, rank) for rank, source in enumerate(births.sources, len(rows))]
    bad = made_of(*births.bad_outputs)
    totals = [(f"the result has {bad}", "bad") if bad else ("the result is finite", "good")]
    return PageSection(f"{births.title}.", [PageGroup("", rows)], totals)


def _row(birth: Birth, names: Mapping[str, str], rank: int, place: int) -> PageRow:
    fates = {True: ("reached the result", "bad"), False: ("did not reach the result", "good")}
    fate = ("fate unknown", "warning") if birth.reached_output is None else fates[birth.reached_output]
    facts: list[tuple[str, str | list[str]]] = [("made", made_of(birth.nans, birth.infinities) or birth.kind)]
    if birth.cause:
        facts.append(("cause", birth.cause))
    if birth.operands:
        facts.append(("operands", [str(operand) for operand in birth.operands]))
    return operation_row(
        birth,
        names,
        "; ".join([birth.cause or birth.primitive, *details_of(birth)[1:]]),
        marks=[("NaN" if birth.kind == "nan" else "infinity", ""), fate],
        keys=(-rank, -place, birth.runs),
        facts=facts,
        fixes=[[birth.fix]] if birth.fix else (),
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
