"""Documents FRAMEWORK-missing: which functions of columns give a missing value.

missing  the reductions of missing values alone whose result is missing, for any dtype of numbers
never    the other reductions
dtypes   {FORMAT: "MODULE CLASS NAME"}: how to recognise the dtype of the columns that hold a format
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oracles.tables import names

_REDUCTIONS = ("sum", "prod", "mean", "var", "std", "any", "all", "min", "max", "cumulative_sum", "cumulative_prod")


def missing_document(
    framework: str,
    version: str,
    is_missing: Callable[[str, Any], bool],
    own: str,
    dtypes: Mapping[str, Any],
    make: Callable[[Any], Any],
) -> dict[str, Any]:
    """Measure reductions of columns in which every value is missing.

    Args:
        framework: its name.
        version: its version.
        is_missing: whether a reduction of the framework gives a missing value for a column.
        own: the names of reductions that differ from ours, as in `tables.named`.
        dtypes: the dtypes by the names of formats.
        make: makes a column of a dtype.
    """
    own_names = {name: name for name in _REDUCTIONS} | names(own)
    columns = [make(dtype) for name, dtype in dtypes.items() if name not in ("bool", "float16")]
    missing = [ours for ours, theirs in own_names.items() if any(is_missing(theirs, column) for column in columns)]
    return {
        "framework": framework,
        "version": version,
        "missing": " ".join(missing),
        "never": " ".join(name for name in own_names if name not in missing),
        "dtypes": {name: f"{type(each).__module__} {type(each).__name__} {each}" for name, each in dtypes.items()},
    }
