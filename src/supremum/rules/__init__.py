"""Promotion rules as values: one file per framework, each of which defines frozen rule sets.

They decide dtypes, and never touch an array.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from supremum.errors import shown
from supremum.public_names import public_names
from supremum.rules.capping import cap_at_32_bits
from supremum.rules.jax_flags import holds_64_bits as holds_64_bits
from supremum.rules.jax_flags import is_explicit_x64 as is_explicit_x64
from supremum.rules.jax_flags import is_x64 as is_x64
from supremum.rules.lattices import weak_defaults as weak_defaults
from supremum.rules.names import FOLLOWS_JAX as FOLLOWS_JAX
from supremum.rules.names import HOMES, RuleName, rule_names
from supremum.rules.names import JAX_ALIASES as JAX_ALIASES
from supremum.rules.names import canonical_name as canonical_name
from supremum.rules.names import question as question
from supremum.rules.reductions import Reduction
from supremum.rules.rule_set import LatticeRuleSet, RuleSet
from supremum.rules.runtimes import EVERYTHING as EVERYTHING
from supremum.rules.runtimes import UNWRAPPED as UNWRAPPED
from supremum.rules.runtimes import Runtime
from supremum.rules.runtimes import is_typed as is_typed
from supremum.rules.scope import IN_JAX as IN_JAX
from supremum.rules.scope import SCOPE as SCOPE
from supremum.rules.scope import RulesLike as RulesLike
from supremum.rules.scope import Watcher as Watcher
from supremum.rules.scope import find_rules as find_rules
from supremum.rules.scope import get_rules, set_default_rules, use_rules
from supremum.rules.scope import jax_context as jax_context
from supremum.rules.scope import memory_of as memory_of
from supremum.rules.scope import scope_in_force as scope_in_force
from supremum.rules.scope import sync_jax_context as sync_jax_context
from supremum.rules.scope import watching as watching
from supremum.rules.shared_cache import Memory as Memory
from supremum.rules.verdicts import Storing

if TYPE_CHECKING:
    from supremum.rules.array_api import ARRAY_API
    from supremum.rules.array_casts import ArrayCasts as ArrayCasts
    from supremum.rules.jax import (
        JAX_EXPLICIT_X64,
        JAX_STRICT_EXPLICIT_X64,
        JAX_STRICT_X32,
        JAX_STRICT_X64,
        JAX_X32,
        JAX_X64,
    )
    from supremum.rules.jax import held_dtype as held_dtype
    from supremum.rules.keras import KERAS
    from supremum.rules.mlx import MLX
    from supremum.rules.numpy import NUMPY
    from supremum.rules.numpy_legacy import NUMPY_LEGACY
    from supremum.rules.paddle import PADDLE
    from supremum.rules.pandas import PANDAS, PANDAS_NULLABLE
    from supremum.rules.polars import POLARS, POLARS_1
    from supremum.rules.pyarrow import PYARROW
    from supremum.rules.tf import TF_ALL, TF_OFF, TF_SAFE
    from supremum.rules.tf_rfc import TF_RFC_ALL, TF_RFC_NONE, TF_RFC_SAFE
    from supremum.rules.tinygrad import TINYGRAD
    from supremum.rules.torch import TORCH
    from supremum.rules.torch import TorchRules as TorchRules

__all__ = [
    "ARRAY_API",
    "JAX_EXPLICIT_X64",
    "JAX_STRICT_EXPLICIT_X64",
    "JAX_STRICT_X32",
    "JAX_STRICT_X64",
    "JAX_X32",
    "JAX_X64",
    "KERAS",
    "MLX",
    "NUMPY",
    "NUMPY_LEGACY",
    "PADDLE",
    "PANDAS",
    "PANDAS_NULLABLE",
    "POLARS",
    "POLARS_1",
    "PYARROW",
    "TF_ALL",
    "TF_OFF",
    "TF_RFC_ALL",
    "TF_RFC_NONE",
    "TF_RFC_SAFE",
    "TF_SAFE",
    "TINYGRAD",
    "TORCH",
    "LatticeRuleSet",
    "Reduction",
    "RuleName",
    "RuleSet",
    "Runtime",
    "Storing",
    "cap_at_32_bits",
    "get_rules",
    "rule_names",
    "set_default_rules",
    "use_rules",
]

# Names that are imported lazily, and their modules; a framework's rules load on first use.
_MODULES = {attribute: module for module, attribute in HOMES.values()} | {"TorchRules": "torch", "held_dtype": "jax"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'supremum.rules' has no attribute {shown(name)}")
    return getattr(importlib.import_module(f"supremum.rules.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return public_names(globals())
