"""Promotion rules as values: one file per family, each ending in frozen rule sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from supremum.rules.registry import get_rules, rule_names
from supremum.rules.rule_set import RuleSet

if TYPE_CHECKING:
    from supremum.rules.jax import JAX_X32, JAX_X64
    from supremum.rules.lattice_rules import LatticeRuleSet

__all__ = ["JAX_X32", "JAX_X64", "LatticeRuleSet", "RuleSet", "get_rules", "rule_names"]

# Where the lazy names are: no family is read before it is asked for.
_HOMES = {"JAX_X32": "jax", "JAX_X64": "jax", "LatticeRuleSet": "lattice_rules"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'supremum.rules' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"supremum.rules.{_HOMES[name]}"), name)
