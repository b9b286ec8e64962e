"""The state that an optimizer or a loss scale is read from while a step is traced.

Code that a traced step calls, such as a gradient transformer that reads `optimizer.learning_rate`, sees the number that
is an input of the step, not a constant of the time at which it was traced.
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
    """The state that `use_state` put in place of an object's own, or else its own."""
    return _states.get().get(id(owner), own)  # pyright: ignore[reportReturnType] (what `use_state` put there)


def copied(tree: T) -> T:
    """Copies of the arrays of a state: the next step reuses the memory of the state itself.

    Arrays whose memory a failed step has taken are returned as they are: their shapes and dtypes are still known.
    """
    leaves = jax.tree.leaves(tree)
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        return tree
    if any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in leaves):
        return tree
    with jax.ensure_compile_time_eval():  # real arrays, also while JAX is tracing
        return _copy_arrays(tree)


@jax.jit
def _copy_arrays(tree: Any) -> Any:
    return jax.tree.map(jnp.copy, tree)


@contextmanager
def use_state(owner: object, state: object) -> Generator[None]:
    """Read an object's state from `state` for the time of a block."""
    token = _states.set({**_states.get(), id(owner): state})
    try:
        yield
    finally:
        _states.reset(token)
