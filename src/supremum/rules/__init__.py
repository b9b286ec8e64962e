"""Promotion rules as values: one file per family, each ending in frozen rule sets."""

from supremum.rules.jax import JAX_X32, JAX_X64
from supremum.rules.lattice_rules import LatticeRuleSet
from supremum.rules.registry import RULE_SETS, get_rules, rule_names
from supremum.rules.rule_set import RuleSet

__all__ = ["JAX_X32", "JAX_X64", "RULE_SETS", "LatticeRuleSet", "RuleSet", "get_rules", "rule_names"]
