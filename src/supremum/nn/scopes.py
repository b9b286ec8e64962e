"""What surrounds a layer's call: the dtype its variables are cast to, values laid over variables, and random keys.

Each scope is thread-local and restored on error. The autocast dtype changes what a traced function computes, so it is
part of JAX's cache key: a function jitted inside one layer is traced again inside another of another dtype.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import jax

from supremum.formats import DType

if TYPE_CHECKING:
    from supremum.nn.variables import Variable

autocast_dtype = jax.make_user_context(default_value=None)
"""The compute dtype of the layer whose `call` is running, or None outside of any; `with autocast_dtype(dtype):`."""


def current_autocast_dtype() -> DType | None:
    """The dtype that autocast variables are read in here; None where they are read as they are stored."""
    return autocast_dtype.value


_overlay: ContextVar[dict[Variable, jax.Array] | None] = ContextVar("overlay", default=None)


def current_overlay() -> dict[Variable, jax.Array] | None:
    """The values laid over variables for the `functional_call` that is running, if one is."""
    return _overlay.get()


@contextmanager
def overlay(values: dict[Variable, jax.Array]) -> Generator[None]:
    """Read variables from `values`, and write them there, for the time of a block."""
    token = _overlay.set(values)
    try:
        yield
    finally:
        _overlay.reset(token)


_keys: ContextVar[Iterator[jax.Array] | None] = ContextVar("keys", default=None)


@contextmanager
def initial_keys(seed: int) -> Generator[None]:
    """Draw the keys of new weights from a seed, in the order in which the weights are added."""
    root = jax.random.key(seed)
    token = _keys.set(jax.random.fold_in(root, number) for number in itertools.count())
    try:
        yield
    finally:
        _keys.reset(token)


def next_initial_key() -> jax.Array:
    """The key for the next new weight.

    Raises:
        RuntimeError: outside of `initial_keys`, where two layers would silently start from equal weights.
    """
    keys = _keys.get()
    if keys is None:
        raise RuntimeError("this layer is not built: call nn.initialize(layer, *inputs, seed=0) before using it")
    return next(keys)
