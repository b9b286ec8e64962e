"""Measure which functions of columns give a missing value; `extract_oracles.py pandas-missing`, for one, calls this.

The documents have:

    missing  the reductions of missing values alone whose result is missing, for any dtype of numbers
    never    the other reductions
    dtypes   {FORMAT: "MODULE CLASS NAME"}: how to recognise the dtype of the columns that hold a format
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_REDUCTIONS = ("sum", "prod", "mean", "var", "std", "any", "all", "min", "max", "cumulative_sum", "cumulative_prod")


def _document(
    framework: str,
    version: str,
    reductions: Mapping[str, Callable[[Any], Any]],
    dtypes: Mapping[str, Any],
    make: Callable[[Any], Any],
) -> dict[str, Any]:
    """Measure reductions of columns in which every value is missing; `make` makes one of a dtype."""
    made = [make(dtype) for name, dtype in dtypes.items() if name not in ("bool", "float16")]
    missing = [name for name, call in reductions.items() if any(call(column) for column in made)]
    return {
        "framework": framework,
        "version": version,
        "missing": " ".join(missing),
        "never": " ".join(name for name in reductions if name not in missing),
        "dtypes": {name: f"{type(each).__module__} {type(each).__name__} {each}" for name, each in dtypes.items()},
    }


def pandas_missing() -> dict[str, Any]:
    """Measure pandas' nullable columns."""
    import pandas as pd

    from oracle_pandas import NULLABLE_CODES, name_in_pandas

    def is_missing(method: str) -> Callable[[Any], bool]:
        return lambda column: pd.Series(getattr(column, method)()).isna().any()

    own = {"cumulative_sum": "cumsum", "cumulative_prod": "cumprod"}
    names = {name: name_in_pandas(name, nullable=True) for name in NULLABLE_CODES.values()}
    dtypes = {name: pd.array([None], theirs).dtype for name, theirs in names.items()}
    reductions = {name: is_missing(own.get(name, name)) for name in _REDUCTIONS}
    return _document("pandas", pd.__version__, reductions, dtypes, lambda dtype: pd.Series([None], dtype=dtype))


def polars_missing() -> dict[str, Any]:
    """Measure Polars' columns of numbers; `any` and `all` take Boolean columns."""
    import polars as pl

    from oracle_polars import TYPES

    def is_missing(method: str) -> Callable[[Any], bool]:
        takes_bools = method in ("any", "all")

        def asked(column: Any) -> bool:
            frame = pl.DataFrame({"a": column.cast(pl.Boolean) if takes_bools else column})
            return frame.select(getattr(pl.col("a"), method)())["a"].null_count() > 0

        return asked

    own = {"prod": "product", "cumulative_sum": "cum_sum", "cumulative_prod": "cum_prod"}
    names = {theirs.lower().replace("boolean", "bool"): theirs for theirs in TYPES.values()}
    dtypes = {name: pl.Series([None], dtype=getattr(pl, theirs)).dtype for name, theirs in names.items()}
    reductions = {name: is_missing(own.get(name, name)) for name in _REDUCTIONS}
    return _document("polars", pl.__version__, reductions, dtypes, lambda dtype: pl.Series([None], dtype=dtype))


def pyarrow_missing() -> dict[str, Any]:
    """Measure PyArrow's functions of numbers; `any` and `all` take bool arrays."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from oracle_pyarrow import CODES, type_of

    def is_missing(function: str) -> Callable[[Any], bool]:
        takes_bools = function in ("any", "all")

        def asked(column: Any) -> bool:
            result = getattr(pc, function)(column.cast(pa.bool_()) if takes_bools else column)
            return pa.array([result.as_py()] if isinstance(result, pa.Scalar) else result).null_count > 0

        return asked

    own = {"prod": "product", "var": "variance", "std": "stddev"}
    dtypes = {name: type_of(name) for name in CODES.values()}
    reductions = {name: is_missing(own.get(name, name)) for name in _REDUCTIONS}
    return _document("pyarrow", pa.__version__, reductions, dtypes, lambda dtype: pa.array([None], dtype))
