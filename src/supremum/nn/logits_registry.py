"""What softmax and sigmoid were computed from, so that a cross entropy of them can be computed from the logits.

spec/keras-rfc-293-mixed-precision.md, "Softmax and cross entropy". Arrays and tracers of JAX take no attributes, so
that this is a table beside them: by identity, since tracers compare element by element, and only as long as the output
lives. An output and its logits belong to one trace, so gradients go through the logits; what comes out of a function
that was jitted, or out of another operation, is another array and has no entry.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.core import Tracer


class Origin(NamedTuple):
    """Where probabilities come from.

    Args:
        kind: `"softmax"` or `"sigmoid"`.
        logits: what it was applied to, in the dtype it had.
        axes: the axes it was normalized over, counted from 0; none for a sigmoid.
    """

    kind: str
    logits: jax.Array
    axes: tuple[int, ...]


_origins: dict[int, tuple[weakref.ref[Any], Origin]] = {}


def record(output: Any, origin: Origin) -> Any:
    """Remember what an output was computed from, for as long as it lives.

    Args:
        output: an array or tracer of JAX.
        origin: where it comes from.

    Returns:
        The output.
    """
    key = id(output)

    def forget(gone: weakref.ref[Any], origins: dict[int, Any] = _origins) -> None:
        # An identity may have been given to another output already.
        if origins.get(key, (None,))[0] is gone:
            origins.pop(key, None)

    _origins[key] = (weakref.ref(output, forget), origin)
    return output


def origin_of(output: Any) -> Origin | None:
    """Where an array comes from; None where nothing is known, or the logits were donated since."""
    reference, origin = _origins.get(id(output), (None, None))
    if reference is None or origin is None or reference() is not output:
        return None
    is_gone = not isinstance(origin.logits, Tracer) and origin.logits.is_deleted()
    return None if is_gone else origin


def carry(given: Any, cast: Any) -> Any:
    """Let what an array was cast to come from where the array came from.

    Args:
        given: the array before the cast.
        cast: the array after it.

    Returns:
        The latter.
    """
    origin = None if cast is given else origin_of(given)
    return cast if origin is None else record(cast, origin)


def record_function(function: Callable[..., Any], x: Any, output: Any) -> Any:
    """Remember the output of a function where it is JAX's softmax or sigmoid; others are left alone.

    Args:
        function: what was called; `functools.partial(jax.nn.softmax, axis=1)` is known too.
        x: its argument.
        output: what it gave.

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
