"""Measure what Polars stores in existing columns, for extract_assignments; `polars-1` does so with Polars 1."""

from __future__ import annotations

import operator
from typing import Any

from assignment_cells import IN_PLACE, NUMBERS, TARGETS, Write, document, measured, numbers, set_at
from extract_oracles import SCALARS
from oracle_polars import types_of


def polars() -> dict[str, Any]:
    """Measure Series, for which `a += b` makes a new one, and cells of a DataFrame."""
    import polars as pl

    types, codes = types_of(pl)
    code_of = {name: code for code, name in codes.items()}
    keys = [*codes, *SCALARS]

    def column(key: str) -> Any:
        return pl.Series("a", [1]).cast(types[key])

    def code(series: Any) -> str:
        return next(key for key, dtype in types.items() if dtype == series.dtype)

    def set_in_frame(target: Any, value: Any) -> Any:
        frame = target.to_frame()
        frame[0, "a"] = value
        return frame["a"]

    def shown(series: Any) -> str:
        return f"{codes[code(series)]} {'null' if series[0] is None else series[0]}"

    # A Series has no operators for shifts.
    operators = {name: write for name, write in IN_PLACE.items() if "shift" not in name}
    operators |= {"pow": operator.ipow, "bitwise_or": operator.ior, "bitwise_xor": operator.ixor}
    assignments: dict[str, Write] = {
        "assign item": set_at(0),
        "assign indices": set_at([0]),
        "assign mask": set_at(pl.Series([True])),
        "assign frame": set_in_frame,
    }
    cells = measured(
        {f"{name} in_place": write for name, write in operators.items()} | assignments,
        keys,
        column,
        lambda key: SCALARS[key] if key in SCALARS else column(key),
        code,
    )
    values = numbers(
        {name: assignments[name] for name in ("assign item", "assign mask")},
        lambda name: column(code_of[name]),
        shown,
        tuple(name for name in (*TARGETS, "float64") if name in code_of),
        (*NUMBERS, 2**100, 2**127, 2**128),  # Polars has integers of 128 bits
    )
    return document("polars", pl.__version__, codes, cells, keys, values)
