"""The departures of the conformance tests, as tables with reasons."""

from __future__ import annotations

from conformance.array_departures import ARRAY_DEPARTURES
from conformance.autocast_departures import AUTOCAST_COMPOSITIONS, AUTOCAST_ROWS
from conformance.departures import DEPARTURES, Departure
from generate.markup import NOTATION, codes, markdown_table
from supremum.rules.names import HOMES, JAX_ALIASES

_DEPARTURES = (*DEPARTURES, *ARRAY_DEPARTURES)
_AUTOCAST = (*AUTOCAST_ROWS, *AUTOCAST_COMPOSITIONS)
_HEAD = ("operations", "operands", "Supremum", "source", "compared with", "cells", "why")


def departures_section(rules: str) -> str:
    """Return the section on departures of a rule set's page, in Markdown."""
    # Those named "jax" are departures of all JAX rule sets.
    names = {rules, *(name for name, members in JAX_ALIASES.items() if rules in members)}
    rows = [row for row in _DEPARTURES if row.rules in names]
    if not rows:
        return "None: every cell that was compared agrees with its source."
    return markdown_table(_HEAD, list(map(_written, rows)))


def departures_page() -> str:
    """Return the page with all departures."""
    parts = [
        "# Departures",
        "Each rule set agrees with its source for all combinations of operands, except in these cells, where it "
        "differs on purpose. The tests count the cells, and fail if a departure no longer occurs. `[]` after a "
        "dtype stands for arrays without dimensions, and `[:]` for arrays with dimensions. *Either order* stands for "
        "both orders of the operands.",
        NOTATION,
    ]
    for name in ("jax", *HOMES):
        rows = [row for row in _DEPARTURES if row.rules == name]
        if rows:
            parts += [f"## `{name}`", markdown_table(_HEAD, list(map(_written, rows)))]
    parts += ["## autocast", "The source is the list of functions of `torch.autocast` on CUDA."]
    cast = ((codes(row.functions), codes(row.ours), codes(row.theirs), row.reason) for row in _AUTOCAST)
    parts.append(markdown_table(("functions", "Supremum", "PyTorch", "why"), list(cast)))
    return "\n\n".join(parts) + "\n"


def _written(row: Departure) -> tuple[str, ...]:
    operands = " with ".join(codes(side) for side in (row.left, row.right) if side)
    if row.either_order:
        operands += ", either order"
    cells = f"{row.cells:,}" if row.cells else "by value"
    return (codes(row.operations), operands, codes(row.ours), codes(row.theirs), row.form, cells, row.reason)
