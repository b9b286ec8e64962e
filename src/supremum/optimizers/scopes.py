"""The state that an optimizer or a loss scale is read from while a step is traced.

Code that a traced step calls, such as a gradient transformer that reads `optimizer.learning_rate`, sees the number that
is an input of the step, not a constant of the time at which it was traced.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TypeVar

S = TypeVar("S")

_NONE: Mapping[int, object] = MappingProxyType({})
_states: ContextVar[Mapping[int, object]] = ContextVar("states", default=_NONE)


def state_in_force(owner: object, own: S) -> S:
    """The state laid over an object's own, where one is."""
    return _states.get().get(id(owner), own)  # pyright: ignore[reportReturnType] (what `reading` put there)


@contextmanager
def reading(owner: object, state: object) -> Generator[None]:
    """Read an object's state from `state` for the time of a block."""
    token = _states.set({**_states.get(), id(owner): state})
    try:
        yield
    finally:
        _states.reset(token)
