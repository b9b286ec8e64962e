"""Rule sets by name; the file a family lives in is read when one of its names is first asked for."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Any

from supremum.errors import UnknownNameError
from supremum.rules.rule_set import RuleSet

# Name: module in this package, and the value in it.
HOMES: dict[str, tuple[str, str]] = {
    "jax-x64": ("jax", "JAX_X64"),
    "jax-x32": ("jax", "JAX_X32"),
    "jax-explicit-x64": ("jax", "JAX_EXPLICIT_X64"),
    "jax-strict": ("jax", "JAX_STRICT"),
    "numpy": ("numpy", "NUMPY"),
    "numpy-legacy": ("numpy_legacy", "NUMPY_LEGACY"),
    "torch": ("torch", "TORCH"),
    "keras": ("keras", "KERAS"),
    "tf-rfc-all": ("tf_rfc", "TF_RFC_ALL"),
    "tf-rfc-safe": ("tf_rfc", "TF_RFC_SAFE"),
    "tf-rfc-none": ("tf_rfc", "TF_RFC_NONE"),
    "tf-off": ("tf", "TF_OFF"),
    "tf-all": ("tf", "TF_ALL"),
    "tf-safe": ("tf", "TF_SAFE"),
    "paddle": ("paddle", "PADDLE"),
    "array-api": ("array_api", "ARRAY_API"),
}
FOLLOWS_JAX = "jax"
"""The name that stands for `jax-x64`, `jax-x32` or `jax-explicit-x64`, whichever JAX's own flags say."""


def rule_names() -> tuple[str, ...]:
    """Every name of a rule set."""
    return (FOLLOWS_JAX, *HOMES)


def canonical_name(name: Any) -> str:
    """The name of the rule set itself: `"jax"` becomes the one that JAX's flag says at the time.

    Raises:
        UnknownNameError: for a name that is none; the message has the near ones.
    """
    if not isinstance(name, str):
        raise UnknownNameError("rule set", name, rule_names())
    if name == FOLLOWS_JAX:
        return name_of_jax()
    if name not in HOMES:
        raise UnknownNameError("rule set", name, rule_names())
    return name


def is_x64() -> bool:
    """What JAX's flag says; True where JAX has not been imported, which it is not for this.

    A program that has not imported it has set no flag of its either.
    """
    jax = sys.modules.get("jax")
    return jax is None or not hasattr(jax, "config") or jax.config.jax_enable_x64


def name_of_jax() -> str:
    """The rule set that JAX's flags say."""
    return "jax-x64" if is_x64() else "jax-explicit-x64" if _allows_explicit_x64() else "jax-x32"


def holds_64_bits() -> bool:
    """Whether JAX holds 64 bits where they are asked for: with x64 on, or where its other flag allows it."""
    return is_x64() or _allows_explicit_x64()


def _allows_explicit_x64() -> bool:
    mode: Any = getattr(sys.modules["jax"].config, "jax_explicit_x64_dtypes", None)  # older ones have no such flag
    return mode is not None and mode is mode.__class__.ALLOW


def find_rules(name: str) -> RuleSet:
    """The rule set of a name.

    Raises:
        UnknownNameError: for a name that is none; the message has the near ones.

    >>> find_rules("jax-x32").summary
    'JAX as it starts, with jax_enable_x64 off: 64-bit dtypes are held in 32 bits'
    >>> find_rules("jax-64")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown rule set 'jax-64': did you mean 'jax-x64'?
    """
    return _load(canonical_name(name))


@cache
def _load(name: str) -> RuleSet:
    module, attribute = HOMES[name]
    return getattr(importlib.import_module(f"supremum.rules.{module}"), attribute)
