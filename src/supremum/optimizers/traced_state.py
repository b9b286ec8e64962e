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
    """The state laid over an object's own, where one is."""
    return _states.get().get(id(owner), own)  # pyright: ignore[reportReturnType] (what `use_state` put there)


def copied(tree: T) -> T:
    """Arrays of a state for somebody to keep: copies, for a step uses the memory of the state again.

    What a step that failed has left without memory is given as it is: its shape and dtype are known still.
    """
    leaves = jax.tree.leaves(tree)
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        return tree
    if any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in leaves):
        return tree
    with jax.ensure_compile_time_eval():  # real arrays also for who asks while JAX is tracing something
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
