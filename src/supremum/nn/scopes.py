"""What surrounds a layer's call: the dtype of its variables, values that replace theirs, declarations, random keys.

Each scope is thread-local and restored on error. The dtype changes what a traced function computes, so it is part of
JAX's cache key: a function jitted inside one layer is traced again inside another of another dtype.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import jax

from supremum.errors import ArgumentError
from supremum.formats import DType
from supremum.scoped_values import BlockValue

_SUSPENDED = "infer"
# A dtype, "infer" inside a layer that has none of its own, or None outside of every layer.
_autocast: Any = jax.make_user_context(default_value=None)


def autocast_to(dtype: DType | None) -> AbstractContextManager[Any]:
    """Read autocast variables in a dtype for the time of a block.

    Args:
        dtype: the dtype; None to read them as they are stored, whatever surrounds the block.
    """
    return _autocast(_SUSPENDED if dtype is None else dtype)


def autocast_scope() -> Callable[[], AbstractContextManager[Any]] | None:
    """The dtype that autocast variables are read in here, to be put in force again later; None outside of layers."""
    mark = _autocast.value
    return None if mark is None else partial(_autocast, mark)


def current_autocast_dtype() -> DType | None:
    """The dtype that autocast variables are read in here; None where they are read as they are stored."""
    mark = _autocast.value
    return None if mark is None or isinstance(mark, str) else mark


_overlay: ContextVar[dict[Any, Any] | None] = ContextVar("overlay", default=None)


def current_overlay() -> dict[Any, Any] | None:
    """The values laid over variables for the `functional_call` that is running, if one is."""
    return _overlay.get()


@contextmanager
def overlay(values: dict[Any, Any]) -> Generator[None]:
    """Read variables from `values`, and write them there, for the time of a block."""
    token = _overlay.set(values)
    try:
        yield
    finally:
        _overlay.reset(token)


_declaring: ContextVar[bool | None] = ContextVar("declaring", default=None)


def is_declaring() -> bool:
    """Whether layers are only asked for the shapes of their weights and outputs, and nothing is computed."""
    return _declaring.get() is not None


def is_declaring_again() -> bool:
    """Whether layers were just asked for another length of the axes that have none; what differs has none either."""
    return _declaring.get() is True


@contextmanager
def declaring(*, again: bool = False) -> Generator[None]:
    """Let layers add weights, whose values are made later, and forget what they assign, for the time of a block.

    Args:
        again: whether they were just asked for another length of the axes that have none.
    """
    token = _declaring.set(again)
    try:
        with overlay({}), random_key(jax.random.key(0)):
            yield
    finally:
        _declaring.reset(token)


_keys: BlockValue[Iterator[jax.Array] | None] = BlockValue("keys", None)


@contextmanager
def random_key(key: Any) -> Generator[None]:
    """Draw the random numbers of layers, those of dropout for one, from a key for the time of a block.

    Args:
        key: a key of `jax.random`. Keys for layers are folded from it in the order in which they ask; a function that
            JAX traces once and runs often, such as the body of a scan, must bring a key of its own for every run.

    >>> with random_key(jax.random.key(0)):
    ...     first, second = next_random_key(), next_random_key()
    >>> bool(first == second)
    False
    """
    with _keys.holding(jax.random.fold_in(key, number) for number in itertools.count()):
        yield


def has_random_key() -> bool:
    """Whether layers are given random numbers here."""
    return _keys.value is not None


def next_random_key() -> jax.Array:
    """A key that no other layer of the running call gets.

    Raises:
        ArgumentError: where no key was given.
    """
    keys = _keys.value
    if keys is None:
        raise ArgumentError(
            "a layer needs random numbers and was given no key: use nn.functional_call(model, variables, x, "
            "random_key=jax.random.key(0)), or call it in `with nn.random_key(jax.random.key(0)):`"
        )
    return next(keys)
