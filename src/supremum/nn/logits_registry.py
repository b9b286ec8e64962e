"""Remember the logits of softmax and sigmoid outputs, from which a cross entropy can then be computed.

Keras RFC 293, mixed precision, "Softmax and cross entropy". JAX's arrays and tracers take no attributes, so the logits
are in a separate table. Its keys are identities, since tracers compare element by element, and an entry lives as long
as the output. An output and its logits belong to one trace, so gradients go through the logits. The results of jitted
functions and of other operations are different arrays, which have no entry.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.core import Tracer


class Origin(NamedTuple):
    """The function and logits that probabilities were computed from.

    Args:
        kind: `"softmax"` or `"sigmoid"`.
        logits: the argument of the function, in its own dtype.
        axes: the axes that softmax normalized over, counted from 0; empty for a sigmoid.
    """

    kind: str
    logits: jax.Array
    axes: tuple[int, ...]


_origins: dict[int, tuple[weakref.ref[Any], Origin]] = {}


def record(output: jax.Array, origin: Origin) -> Any:
    """Remember the origin of an output for as long as the output lives.

    Args:
        output: an array or tracer of JAX.
        origin: the function and logits it was computed from.

    Returns:
        The output.
    """
    key = id(output)

    def forget(gone: weakref.ref[Any], origins: dict[int, Any] = _origins) -> None:
        # A new output may already have the same identity.
        if origins.get(key, (None,))[0] is gone:
            origins.pop(key, None)

    _origins[key] = (weakref.ref(output, forget), origin)
    return output


def origin_of(output: object) -> Origin | None:
    """The origin of an array; None if it is not known, or if the logits have been donated."""
    reference, origin = _origins.get(id(output), (None, None))
    if reference is None or origin is None or reference() is not output:
        return None
    is_gone = not isinstance(origin.logits, Tracer) and origin.logits.is_deleted()
    return None if is_gone else origin


def copy_origin(array: object, cast: jax.Array) -> Any:
    """Copy the origin of an array to the result of a cast.

    Args:
        array: the array before the cast.
        cast: the array after the cast.

    Returns:
        The array after the cast.
    """
    origin = None if cast is array else origin_of(array)
    return cast if origin is None else record(cast, origin)


def record_function(function: Callable[..., Any], x: jax.Array, output: jax.Array) -> Any:
    """Remember the origin of a function's output if the function is JAX's softmax or sigmoid.

    Args:
        function: the function; `functools.partial(jax.nn.softmax, axis=1)` counts too.
        x: its argument.
        output: its output.

    Returns:
        The output.
    """
    named: dict[str, Any] = {}
    if isinstance(function, functools.partial) and not function.args:
        function, named = function.func, function.keywords
    if function is jax.nn.softmax and named.keys() <= {"axis"} and isinstance(named.get("axis", -1), int):
        return record(output, Origin("softmax", x, (named.get("axis", -1) % x.ndim,)))
    if function is jax.nn.sigmoid and not named:
        return record(output, Origin("sigmoid", x, ()))
    return output
