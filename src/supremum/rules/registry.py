"""Rule sets by name."""

from __future__ import annotations

import sys

from supremum.errors import UnknownNameError
from supremum.rules.jax import JAX_X32, JAX_X64
from supremum.rules.rule_set import RuleSet

RULE_SETS: dict[str, RuleSet] = {rules.name: rules for rules in (JAX_X64, JAX_X32)}
_FOLLOWS_JAX = "jax"
DEFAULT = _FOLLOWS_JAX


def rule_names() -> tuple[str, ...]:
    """Every name `get_rules` knows."""
    return (_FOLLOWS_JAX, *RULE_SETS)


def get_rules(rules: str | RuleSet | None = None) -> RuleSet:
    """The rule set of a name.

    Args:
        rules: a name, a rule set (returned as it is), or None for the default, `"jax"`. `"jax"` stands for `jax-x64`
            or `jax-x32`, whichever JAX's own flag says now; where JAX has not been imported, for `jax-x64`.

    Raises:
        UnknownNameError: for any other name; the message has the near ones.

    >>> get_rules("jax-x32").summary
    'JAX as it starts, with jax_enable_x64 off: 64-bit dtypes are held in 32 bits'
    >>> get_rules("jax-64")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown rule set 'jax-64': did you mean 'jax-x64'?
    """
    if isinstance(rules, RuleSet):
        return rules
    name = DEFAULT if rules is None else rules
    if name == _FOLLOWS_JAX:
        return _current_jax()
    if name not in RULE_SETS:
        raise UnknownNameError("rule set", name, rule_names())
    return RULE_SETS[name]


def _current_jax() -> RuleSet:
    # Never imports JAX: a program that has not imported it has no flag of its either.
    jax = sys.modules.get("jax")
    config = getattr(jax, "config", None)
    return JAX_X64 if config is None or config.jax_enable_x64 else JAX_X32
