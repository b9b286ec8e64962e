"""The calls that the functions of this package trace: their arguments and results are checked here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from supremum.errors import ArgumentError, OperandError
from supremum.jaxprs import TracedCall, is_array, lift_objects, traced_call
from supremum.numerics.widening import is_floating

_ARGUMENTS = bool, int, float, complex, jax.ShapeDtypeStruct
"""The types of arguments that need no conversion to an array."""


def trace(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], under: str) -> TracedCall:
    """Trace a call that has an array or a number among its arguments, if it has any.

    Args:
        fn: the function.
        args: its arguments.
        kwargs: its keyword arguments.
        under: the name of the function that the user called, for messages.

    Raises:
        OperandError: for arguments without an array; a `TypeError`.
    """
    leaves = jax.tree.leaves((args, kwargs))
    is_known = any(is_array(leaf) or isinstance(leaf, _ARGUMENTS) for leaf in leaves)
    if leaves and not is_known and lift_objects(fn, args, kwargs) is None:
        types = ", ".join(dict.fromkeys(type(leaf).__name__ for leaf in leaves))
        raise OperandError(f"{under} needs an array among the arguments of the function, got {types}; use jnp.asarray")
    return traced_call(fn, args, kwargs, under)


def trace_to_run(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], under: str) -> TracedCall:
    """Trace a call of a function that will run.

    Args:
        fn: the function.
        args: its arguments.
        kwargs: its keyword arguments.
        under: the name of the function that the user called, for messages.

    Raises:
        OperandError: for arguments without an array.
        ArgumentError: for a function with side effects or without a floating-point result.
    """
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs))):
        raise OperandError(f"{under} runs the function, so it needs arrays, got a ShapeDtypeStruct; use jnp.ones")
    call = trace(fn, args, kwargs, under)
    if call.program.effects:
        effects = ", ".join(sorted({str(effect) for effect in call.program.effects}))
        raise ArgumentError(f"{under} needs a function without side effects, got one with {effects}; remove them")
    if not any(map(is_floating, call.program.out_avals)) and not floating_numbers(call):
        types = ", ".join(map(str, call.program.out_avals)) or "no arrays"
        raise ArgumentError(f"{under} needs a function with a floating-point result, got one that returns {types}")
    return call


def floating_numbers(call: TracedCall) -> list[float | complex]:
    """The Python numbers among the results of a call that are floating-point; the program does not compute them."""
    leaves = jax.tree.leaves(call.result_of(call.program.out_avals))
    return [leaf for leaf in leaves if isinstance(leaf, (float, complex))]


def refuse_derivatives(function: Callable[..., Any], under: str) -> Callable[..., Any]:
    """Make JAX raise where it differentiates a function.

    Args:
        function: the function.
        under: the name of the function that the user called, for messages.

    Returns:
        The function, whose derivatives raise `ArgumentError`.
    """
    refusing = jax.custom_jvp(function)

    def refuse(*_: Any) -> Any:
        raise ArgumentError(f"{under} cannot be differentiated; use it on the derivative: {under}(jax.grad(function))")

    refusing.defjvp(refuse)
    return refusing
