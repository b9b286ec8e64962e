"""Supremum decides, explains, applies and trains with number formats.

Importing it imports NumPy and ml_dtypes only; `supremum.tracing`, `supremum.mixed_precision`, `supremum.nn`,
`supremum.optimizers` and `supremum.training` need JAX and are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from supremum.decisions import Decision, PromotionError, ScalarOverflowError
from supremum.errors import OperandError, SupremumError, UnknownDtypeError, UnknownNameError
from supremum.promotion import can_promote, explain, promote_types, result_type
from supremum.rules import RuleSet, get_rules, set_default_rules, use_rules

if TYPE_CHECKING:
    from supremum import formats, mixed_precision, nn, operations, optimizers, rules, tracing, training

__version__ = "0.1.0"

__all__ = [
    "Decision",
    "OperandError",
    "PromotionError",
    "RuleSet",
    "ScalarOverflowError",
    "SupremumError",
    "UnknownDtypeError",
    "UnknownNameError",
    "can_promote",
    "explain",
    "formats",
    "get_rules",
    "mixed_precision",
    "nn",
    "operations",
    "optimizers",
    "promote_types",
    "result_type",
    "rules",
    "set_default_rules",
    "tracing",
    "training",
    "use_rules",
]

_FLOORS = {"formats", "mixed_precision", "nn", "operations", "optimizers", "rules", "tracing", "training"}


def __getattr__(name: str) -> Any:
    if name in _FLOORS:
        return importlib.import_module(f"supremum.{name}")
    raise AttributeError(f"module 'supremum' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
