"""Rule sets by name; the module of a rule set is imported on first use of its name."""

from __future__ import annotations

import importlib
from functools import cache

from supremum.rules.names import FOLLOWING, HOMES, canonical_name
from supremum.rules.rule_set import RuleSet
from supremum.rules.shared_cache import Memory

_MEMORIES: dict[str, Memory] = {name: Memory(name) for name in (*FOLLOWING, *HOMES)}


def memory_of(rules: str | RuleSet) -> Memory:
    """The caches of a rule set, or of a name, which may stand for several rule sets.

    Args:
        rules: the rule set or its name.

    Raises:
        KeyError: for an unknown name.
    """
    return _MEMORIES[rules] if isinstance(rules, str) else rules.memory


def find_rules(name: str, *, in_jax: bool = True) -> RuleSet:
    """Find a rule set by name.

    Args:
        name: the name.
        in_jax: as for `canonical_name`.

    Raises:
        UnknownNameError: for an unknown name; the message suggests similar ones.

    >>> find_rules("jax-x32").summary
    'JAX as it starts, with jax_enable_x64 off: 64-bit dtypes are held in 32 bits'
    >>> find_rules("jax-64")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown rule set 'jax-64': did you mean 'jax-x64'?
    """
    return _load(canonical_name(name, in_jax=in_jax))


@cache
def _load(name: str) -> RuleSet:
    module, attribute = HOMES[name]
    return getattr(importlib.import_module(f"supremum.rules.{module}"), attribute)
