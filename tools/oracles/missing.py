"""Documents FRAMEWORK-missing: which functions of columns give a missing value.

missing  the reductions of missing values alone whose result is missing, for any dtype of numbers
never    the other reductions
dtypes   {FORMAT: "MODULE CLASS NAME"}: how to recognise the dtype of the columns that hold a format
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oracles.tables import Call, Framework

_REDUCTIONS = ("sum", "prod", "mean", "var", "std", "any", "all", "min", "max", "cumulative_sum", "cumulative_prod")


def missing_document(
    framework: Framework, is_missing: Callable[[Call, Any], bool], dtypes: Mapping[str, Any], null: Callable[[Any], Any]
) -> dict[str, Any]:
    """Measure reductions of columns in which every value is missing.

    Args:
        framework: the framework.
        is_missing: whether a reduction of the framework gives a missing value for a column.
        dtypes: the dtypes by the names of formats.
        null: makes a column of one missing value of a dtype.
    """
    columns = [null(dtype) for name, dtype in dtypes.items() if name not in ("bool", "float16")]
    missing = [
        name for name in _REDUCTIONS if any(is_missing(framework.reductions[name], column) for column in columns)
    ]
    return {
        "framework": framework.name,
        "version": framework.version,
        "missing": " ".join(missing),
        "never": " ".join(name for name in _REDUCTIONS if name not in missing),
        "dtypes": {name: f"{type(each).__module__} {type(each).__name__} {each}" for name, each in dtypes.items()},
    }
