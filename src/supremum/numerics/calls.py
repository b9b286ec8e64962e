"""The calls that the functions of this package run: traced and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from supremum.errors import ArgumentError, OperandError
from supremum.jaxprs import TracedCall, traced_call
from supremum.numerics.arguments import check_arguments
from supremum.numerics.widening import is_floating


def checked_call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], under: str) -> TracedCall:
    """Trace a call whose values are to be measured.

    Args:
        fn: the function.
        args: its arguments.
        kwargs: its keyword arguments.
        under: the name of the function that the user called, for messages.

    Raises:
        OperandError: for arguments without an array.
        ArgumentError: for a function with side effects or without a floating-point result.
    """
    call = pure_call(fn, args, kwargs, under)
    if not any(map(is_floating, call.program.out_avals)):
        types = ", ".join(map(str, call.program.out_avals)) or "no arrays"
        raise ArgumentError(f"{under} needs a function with a floating-point result, got one that returns {types}")
    return call


def pure_call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], under: str) -> TracedCall:
    """Trace a call of a function that will run.

    Args:
        fn: the function.
        args: its arguments.
        kwargs: its keyword arguments.
        under: the name of the function that the user called, for messages.

    Raises:
        OperandError: for arguments without an array.
        ArgumentError: for a function with side effects.
    """
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs))):
        raise OperandError(f"{under} runs the function, so it needs arrays, got a ShapeDtypeStruct; use jnp.ones")
    check_arguments(under, fn, args, kwargs)
    call = traced_call(fn, args, kwargs, under)
    if call.program.effects:
        effects = ", ".join(sorted({str(effect) for effect in call.program.effects}))
        raise ArgumentError(f"{under} needs a function without side effects, got one with {effects}; remove them")
    return call
