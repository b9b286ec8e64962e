"""Rule sets by name; the file a family lives in is read when one of its names is first asked for."""

from __future__ import annotations

import importlib
import sys

from supremum.errors import UnknownNameError
from supremum.rules.rule_set import RuleSet

# Name: module and attribute.
_HOMES: dict[str, tuple[str, str]] = {
    "jax-x64": ("supremum.rules.jax", "JAX_X64"),
    "jax-x32": ("supremum.rules.jax", "JAX_X32"),
}
_FOLLOWS_JAX = "jax"
DEFAULT = _FOLLOWS_JAX


def rule_names() -> tuple[str, ...]:
    """Every name `get_rules` knows."""
    return (_FOLLOWS_JAX, *_HOMES)


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
        name = _current_jax()
    if name not in _HOMES:
        raise UnknownNameError("rule set", name, rule_names())
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)


def _current_jax() -> str:
    # Never imports JAX: a program that has not imported it has no flag of its either.
    config = getattr(sys.modules.get("jax"), "config", None)
    return "jax-x64" if config is None or config.jax_enable_x64 else "jax-x32"
