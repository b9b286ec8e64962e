"""Supremum decides, explains, applies and trains with number formats.

Importing it imports nothing else: each name and each package is loaded when it is first used. `supremum.arrays` loads
the array library that it is used with; `supremum.tracing`, `supremum.mixed_precision`, `supremum.numerics`,
`supremum.nn`, `supremum.optimizers` and `supremum.training` need JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from supremum.public_names import missing_name, public_names
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
        render as render,
    )
    from supremum import (
        reports as reports,
    )
    from supremum.arrays import Array, ArrayVariable, asarray, count_conversions, namespace
    from supremum.cast_outcome import CastOutcome, explain_cast
    from supremum.decisions import Decision, PromotionError, ScalarOverflowError
    from supremum.errors import OperandError, SupremumError, UnknownDtypeError, UnknownNameError
    from supremum.promotion import can_promote, explain, promote_types, result_type
    from supremum.rules import RuleSet, get_rules, set_default_rules, use_rules

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

_PACKAGES = {
    "analysis", "arrays", "demo", "explorer", "formats", "jaxprs", "mixed_precision", "nn", "numerics", "operations",
    "ops", "optimizers", "render", "reports", "rules", "tracing", "training",
}  # fmt: skip
_NAMES = {
    "arrays": ("Array", "ArrayVariable", "asarray", "count_conversions", "namespace"),
    "cast_outcome": ("CastOutcome", "explain_cast"),
    "decisions": ("Decision", "PromotionError", "ScalarOverflowError"),
    "errors": ("OperandError", "SupremumError", "UnknownDtypeError", "UnknownNameError"),
    "promotion": ("can_promote", "explain", "promote_types", "result_type"),
    "rules": ("RuleSet", "get_rules", "set_default_rules", "use_rules"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"supremum.{name}")
    if name not in _MODULE_OF:
        raise missing_name(__name__, name)
    value = getattr(importlib.import_module(f"supremum.{_MODULE_OF[name]}"), name)
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return public_names(globals())
