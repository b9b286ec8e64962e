"""Scopes around a layer's call: the dtype of its variables, replacement values, declarations and random keys.

Each scope is thread-local and restored on error. The dtype changes what a traced function computes, so it is part of
JAX's cache key: a function jitted inside one layer is traced again inside a layer with a different dtype.
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
# A dtype, "infer" inside a layer without a compute dtype, or None outside of all layers.
_autocast: Any = jax.make_user_context(default_value=None)


def autocast_to(dtype: DType | None) -> AbstractContextManager[Any]:
    """Read autocast variables in a dtype inside a block.

    Args:
        dtype: the dtype; None to read them as stored, whatever surrounds the block.
    """
    return _autocast(_SUSPENDED if dtype is None else dtype)


def autocast_scope() -> Callable[[], AbstractContextManager[Any]] | None:
    """A function that enters the current scope of `autocast_to` again; None outside of layers."""
    mark = _autocast.value
    return None if mark is None else partial(_autocast, mark)


def current_autocast_dtype() -> DType | None:
    """The dtype that autocast variables are read in here; None if they are read as stored."""
    mark = _autocast.value
    return None if mark is None or isinstance(mark, str) else mark


_overlay: ContextVar[dict[Any, Any] | None] = ContextVar("overlay", default=None)


current_overlay: Callable[[], dict[Any, Any] | None] = _overlay.get
"""A function that returns the values that replace those of variables in the running `functional_call`; None outside."""


@contextmanager
def overlay(values: dict[Any, Any]) -> Generator[None]:
    """Read variables from `values` and write them there inside a block."""
    token = _overlay.set(values)
    try:
        yield
    finally:
        _overlay.reset(token)


_declaring: ContextVar[bool] = ContextVar("declaring", default=False)


is_declaring: Callable[[], bool] = _declaring.get
"""A function that returns whether layers only declare the shapes of their weights and outputs, and compute nothing."""


@contextmanager
def declaring() -> Generator[None]:
    """Let layers declare weights without values inside a block, and discard what they assign."""
    token = _declaring.set(True)
    try:
        with overlay({}), random_key(jax.random.key(0)):
            yield
    finally:
        _declaring.reset(token)


_marks: BlockValue[bool] = BlockValue("marks", False, lambda _: "end nn.marked_outputs() before the `await`")
OUTPUT = "supremum output of "
"""How the names of marked outputs begin, before the path of the layer."""


@contextmanager
def marked_outputs() -> Generator[None]:
    """Mark the outputs of layers in the programs that JAX traces in a block, with `OUTPUT` and their paths.

    The marks are equations of `jax.ad_checkpoint.checkpoint_name`, which change no value.
    """
    with _marks.holding(True, True):
        yield


def marks_outputs() -> bool:
    """Whether layers mark their outputs."""
    return _marks.value


_keys: BlockValue[Iterator[jax.Array] | None] = BlockValue("keys", None)


@contextmanager
def random_key(key: jax.Array) -> Generator[None]:
    """Draw the random numbers of layers, such as those of dropout, from a key inside a block.

    Args:
        key: a key of `jax.random`. Layers get keys folded from it, in the order in which they ask. A function that JAX
            traces once and runs often, such as the body of a scan, needs a separate key for every run.

    >>> with random_key(jax.random.key(0)):
    ...     first, second = next_random_key(), next_random_key()
    >>> bool(first == second)
    False
    """
    with _keys.holding(jax.random.fold_in(key, number) for number in itertools.count()):
        yield


def has_random_key() -> bool:
    """Whether layers can draw random numbers here."""
    return _keys.value is not None


def next_random_key() -> jax.Array:
    """The next random key, different for every request in the running call.

    Raises:
        ArgumentError: if no key was given.
    """
    keys = _keys.value
    if keys is None:
        raise ArgumentError(
            "the layer needs random numbers but has no key; use nn.functional_call(model, variables, x, "
            "random_key=jax.random.key(0)), or call it in `with nn.random_key(jax.random.key(0)):`"
        )
    return next(keys)
