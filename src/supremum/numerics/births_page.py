"""The page of births: the operations that make NaNs and infinities, and whether these reach the results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from supremum.argument_checks import instance, mapping, text
from supremum.errors import shown
from supremum.extras import require
from supremum.numerics.birth_rows import BadSource, Birth, details_of, made_of, name_of_source
from supremum.numerics.births import Births
from supremum.render import PageRow, PageSection, rows_page
from supremum.tracing import source_lines

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
    require("The page of births", "jinja2")
    for name, each in mapping("births", births, "{'loss': numerics.first_nonfinite(loss)(w, x)}").items():
        text("each name in births", name)
        instance(f"births[{shown(name)}]", each, Births, "Births, as numerics.first_nonfinite(loss)(w, x) returns")
    return rows_page(
        "NaNs and infinities",
        "Where they are born, and which of them reach the result.",
        [_section(name, each) for name, each in births.items()],
        orders=_ORDERS,
        placeholder="log",
        empty="No jitted function was called.",
    )


def _section(name: str, births: Births) -> PageSection:
    by_fate = sorted(enumerate(births), key=lambda pair: not pair[1].reached_output)
    rows = [_row(birth, rank, place) for rank, (place, birth) in enumerate(by_fate)]
    rows += [_source_row(source, len(rows) + rank) for rank, source in enumerate(births.sources)]
    bad = made_of(*births.bad_outputs)
    totals = [(f"the result has {bad}", "bad") if bad else ("the result is finite", "good")]
    return PageSection(name, f"{births.title}.", totals, rows=rows)


def _row(birth: Birth, rank: int, place: int) -> PageRow:
    at = birth.path[-1] if birth.path else None
    fates = {True: ("reached the result", "bad"), False: ("did not reach the result", "good")}
    fate = ("fate unknown", "warning") if birth.reached_output is None else fates[birth.reached_output]
    facts: list[tuple[str, str | list[str]]] = [("made", made_of(birth.nans, birth.infinities) or birth.kind)]
    if birth.cause:
        facts.append(("cause", birth.cause))
    if birth.operands:
        facts.append(("operands", [str(operand) for operand in birth.operands]))
    if birth.path[1:]:
        facts.append(
            ("called from", [f"{Path(each.file).name}:{each.line} {each.function}" for each in birth.path[-2::-1]])
        )
    return PageRow(
        f"{Path(birth.file).name}:{birth.line}" if birth.file else "-",
        birth.expression,
        "; ".join([birth.cause or birth.primitive, *details_of(birth)[1:]]),
        [
            ("NaN" if birth.kind == "nan" else "infinity", ""),
            fate,
        ],
        {
            "File": Path(birth.file).name,
            "Scope": birth.scope,
            "Operation": birth.primitive,
            "Pass": "backward" if birth.backward else "forward",
        },
        (-rank, -place, birth.runs),
        source_lines(birth.file, birth.line, birth.line if at is None else at.end_line, at),
        facts,
        [[birth.fix]] if birth.fix else (),
    )


def _source_row(source: BadSource, rank: int) -> PageRow:
    return PageRow(
        f"{Path(source.file).name}:{source.line}" if source.file else "-",
        source.expression,
        f"{name_of_source(source)} came in with {made_of(source.nans, source.infinities)}",
        [("source", ""), ("reached the result", "bad") if source.reached_output else ("did not reach it", "good")],
        {"File": Path(source.file).name, "Scope": "", "Operation": source.kind, "Pass": "forward"},
        (-rank, -rank, 0),
        source_lines(source.file, source.line, source.line, None),
        [("type", source.type)],
    )
