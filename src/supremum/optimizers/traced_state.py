"""The state that replaces the state of an optimizer or a loss scale while a step is traced.

Code that a traced step calls, such as a gradient transformer that reads `optimizer.learning_rate`, sees the number that
is an input of the step, not a constant from the time of tracing.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.core import Tracer

S = TypeVar("S")
T = TypeVar("T")

_NONE: Mapping[int, object] = MappingProxyType({})
_states: ContextVar[Mapping[int, object]] = ContextVar("states", default=_NONE)


def current_state(owner: object, own: S) -> S:
    """Return the state that `use_state` set for an object, else `own`."""
    return _states.get().get(id(owner), own)  # pyright: ignore[reportReturnType] (what `use_state` put there)


def copied(tree: T) -> T:
    """Copy the arrays of a state, because the next step reuses the memory of the state itself.

    Arrays that a failed step has deleted are returned as they are; their shapes and dtypes are still known.
    """
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, Tracer) or (isinstance(leaf, jax.Array) and leaf.is_deleted()):
            return tree
    with jax.ensure_compile_time_eval():  # concrete arrays, even while JAX is tracing
        return _copy_arrays(tree)


@jax.jit
def _copy_arrays(tree: Any) -> Any:
    return jax.tree.map(jnp.copy, tree)


@contextmanager
def use_state(owner: object, state: object) -> Generator[None]:
    """Replace an object's state by `state` within a block."""
    token = _states.set({**_states.get(), id(owner): state})
    try:
        yield
    finally:
        _states.reset(token)
