"""Supremum decides, explains, applies and trains with number formats.

Importing it imports NumPy and ml_dtypes only. `supremum.arrays` and its names are loaded when they are first used, and
so are `supremum.tracing`, `supremum.mixed_precision`, `supremum.numerics`, `supremum.nn`, `supremum.optimizers` and
`supremum.training`, which need JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from supremum.cast_outcome import CastOutcome, explain_cast
from supremum.decisions import Decision, PromotionError, ScalarOverflowError
from supremum.errors import OperandError, SupremumError, UnknownDtypeError, UnknownNameError
from supremum.promotion import can_promote, explain, promote_types, result_type
from supremum.public_names import public_names
from supremum.renamed_names import add_renamed_modules, renamed_name
from supremum.rules import RuleSet, get_rules, set_default_rules, use_rules
from supremum.version import __version__ as __version__

if TYPE_CHECKING:
    from supremum import (
        analysis,
        arrays,
        formats,
        jaxprs,
        mixed_precision,
        nn,
        numerics,
        operations,
        ops,
        optimizers,
        rules,
        tracing,
        training,
    )
    from supremum import (
        demo as demo,
    )
    from supremum import (
        explorer as explorer,
    )
    from supremum import (
        launching as launching,
    )
    from supremum import (
        render as render,
    )
    from supremum import (
        reports as reports,
    )
    from supremum.arrays import Array, ArrayVariable, asarray, count_conversions, namespace

__all__ = [
    "Array",
    "ArrayVariable",
    "CastOutcome",
    "Decision",
    "OperandError",
    "PromotionError",
    "RuleSet",
    "ScalarOverflowError",
    "SupremumError",
    "UnknownDtypeError",
    "UnknownNameError",
    "analysis",
    "arrays",
    "asarray",
    "can_promote",
    "count_conversions",
    "explain",
    "explain_cast",
    "formats",
    "get_rules",
    "jaxprs",
    "mixed_precision",
    "namespace",
    "nn",
    "numerics",
    "operations",
    "ops",
    "optimizers",
    "promote_types",
    "result_type",
    "rules",
    "set_default_rules",
    "tracing",
    "training",
    "use_rules",
]

_FLOORS = {
    "analysis", "arrays", "demo", "explorer", "formats", "jaxprs", "launching", "mixed_precision", "nn", "numerics",
    "operations", "ops", "optimizers", "render", "reports", "rules", "tracing", "training",
}  # fmt: skip
add_renamed_modules()


def __getattr__(name: str) -> Any:
    if name in _FLOORS:
        return importlib.import_module(f"supremum.{name}")
    if name in __all__:
        return getattr(importlib.import_module("supremum.arrays"), name)
    return renamed_name(__name__, name)


def __dir__() -> list[str]:
    return public_names(globals())
