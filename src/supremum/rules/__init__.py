"""Promotion rules as values: one file per family, each ending in frozen rule sets."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from supremum.errors import shown
from supremum.rules.assignment import Storing
from supremum.rules.fixes import Runtime
from supremum.rules.names import HOMES, rule_names
from supremum.rules.reductions import Reduction
from supremum.rules.rule_set import LatticeRuleSet, RuleSet
from supremum.rules.scope import get_rules, set_default_rules, use_rules

if TYPE_CHECKING:
    from supremum.rules.array_api import ARRAY_API
    from supremum.rules.jax import (
        JAX_EXPLICIT_X64,
        JAX_STRICT_EXPLICIT_X64,
        JAX_STRICT_X32,
        JAX_STRICT_X64,
        JAX_X32,
        JAX_X64,
    )
    from supremum.rules.keras import KERAS
    from supremum.rules.numpy import NUMPY
    from supremum.rules.numpy_legacy import NUMPY_LEGACY
    from supremum.rules.paddle import PADDLE
    from supremum.rules.tf import TF_ALL, TF_OFF, TF_SAFE
    from supremum.rules.tf_rfc import TF_RFC_ALL, TF_RFC_NONE, TF_RFC_SAFE
    from supremum.rules.torch import TORCH

__all__ = [
    "ARRAY_API",
    "JAX_EXPLICIT_X64",
    "JAX_STRICT_EXPLICIT_X64",
    "JAX_STRICT_X32",
    "JAX_STRICT_X64",
    "JAX_X32",
    "JAX_X64",
    "KERAS",
    "NUMPY",
    "NUMPY_LEGACY",
    "PADDLE",
    "TF_ALL",
    "TF_OFF",
    "TF_RFC_ALL",
    "TF_RFC_NONE",
    "TF_RFC_SAFE",
    "TF_SAFE",
    "TORCH",
    "LatticeRuleSet",
    "Reduction",
    "RuleSet",
    "Runtime",
    "Storing",
    "get_rules",
    "rule_names",
    "set_default_rules",
    "use_rules",
]

# The lazy names and their modules: no family is read before it is asked for.
_MODULES = {attribute: module for module, attribute in HOMES.values()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'supremum.rules' has no attribute {shown(name)}")
    return getattr(importlib.import_module(f"supremum.rules.{_MODULES[name]}"), name)
