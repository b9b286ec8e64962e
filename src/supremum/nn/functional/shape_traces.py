"""Shapes and dtypes of results, traced once for all layers whose inputs have the same shapes and dtypes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from supremum.nn.scopes import is_declaring

P = ParamSpec("P")
R = TypeVar("R")

_ARRAY: Any = object()
"""Stands for an array among the arguments of a function."""

_OPTIONS = (int, float, str, np.dtype, type)
"""The options that are kept in a cache. Anything else, such as a closure or a variable, might keep a model alive."""


def trace_once(function: Callable[P, R]) -> Callable[P, R]:
    """Trace a function once for all calls with the same shapes, dtypes and options while layers declare their weights.

    A model traces each of its layers to find the shapes of their inputs. Most layers of a model have inputs like those
    of another, and JAX looks up the result of a jitted function that it has traced before. Outside of such traces the
    function is called as it is.

    Args:
        function: a pure function of arrays, which may be nested, and options.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not is_declaring():
            return function(*args, **kwargs)
        leaves, structure = jax.tree.flatten((args, kwargs))
        arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
        options = [_ARRAY if isinstance(leaf, jax.Array) else leaf for leaf in leaves]
        if not all(option is _ARRAY or isinstance(option, _OPTIONS) for option in options):
            return function(*args, **kwargs)
        try:
            return _jit_call(function, structure, *options)(arrays)
        except Exception:  # raise the error again, without frames of JAX
            return function(*args, **kwargs)

    return call


@lru_cache(1024, typed=True)  # typed, because 1 and 1.0 give different dtypes
def _jit_call(function: Callable[..., Any], structure: Any, *options: Any) -> Callable[[list[jax.Array]], Any]:
    def call(arrays: list[jax.Array]) -> Any:
        rest = iter(arrays)
        args, kwargs = jax.tree.unflatten(structure, [next(rest) if each is _ARRAY else each for each in options])
        return function(*args, **kwargs)

    return jax.jit(call)
