"""What JAX compiles for arrays, apart from the rules in force, which are a part of JAX's cache key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from supremum.rules import FOLLOWS_JAX, IN_JAX, SCOPE, jax_context, sync_jax_context

R = TypeVar("R")
_context = jax_context()


def for_all_rules(function: Callable[..., R]) -> Callable[..., R]:
    """Make a function of JAX that JAX compiles once for all rule sets without a name.

    There can be any number of those. JAX would compile the function for each, and keep that until the process ends.

    Args:
        function: a function of JAX that does not depend on the rules in force.
    """
    in_force = SCOPE.get

    def run(*args: Any, **options: Any) -> R:
        if in_force().is_named:
            return function(*args, **options)
        synced = IN_JAX.synced
        try:
            with _context(FOLLOWS_JAX):
                return function(*args, **options)
        finally:
            if IN_JAX.synced is not synced:  # the garbage collector ended a block meanwhile
                sync_jax_context(IN_JAX.synced)

    return run
