"""Measure what pandas stores in existing arrays, for extract_assignments."""

from __future__ import annotations

import warnings
from typing import Any

from assignment_cells import IN_PLACE, TARGETS, document, measured, numbers
from extract_oracles import SCALARS
from oracle_numpy_legacy import CODES
from oracle_pandas import NULLABLE_CODES, name_in_pandas, name_of


def pandas() -> dict[str, Any]:
    """Measure columns of NumPy's dtypes, for which `a += b` gives the name `a` to a new column if the dtype changes."""
    return _pandas(nullable=False)


def pandas_nullable() -> dict[str, Any]:
    """Measure pandas' nullable columns."""
    return _pandas(nullable=True)


def _pandas(*, nullable: bool) -> dict[str, Any]:
    import pandas as pd

    warnings.simplefilter("ignore")
    codes = NULLABLE_CODES if nullable else CODES
    code_of = {name: code for code, name in codes.items()}
    keys = [*codes, *SCALARS]

    def column(name: str) -> Any:
        return pd.Series([1, 1], dtype=name_in_pandas(name, nullable=nullable))

    def set_all(target: Any, value: Any) -> Any:
        target.iloc[:] = value
        return target

    # pandas has no operator for shifts.
    writes = {f"{name} in_place": write for name, write in IN_PLACE.items() if "shift" not in name}
    cells = measured(
        writes | {"assign item": set_all},
        keys,
        lambda key: column(codes[key]),
        lambda key: SCALARS[key] if key in SCALARS else column(codes[key]),
        lambda found: code_of.get(name_of(found), "x"),
    )
    values = numbers(
        {"assign item": set_all},
        column,
        lambda found: f"{name_of(found)} {found.iloc[0]}",
        tuple(name for name in TARGETS if name in code_of),
    )
    return document("pandas-nullable" if nullable else "pandas", pd.__version__, codes, cells, keys, values)
