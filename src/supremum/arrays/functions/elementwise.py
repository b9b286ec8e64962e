"""Functions for all elementwise rows of the table of operations. Each returns an array of a library and its key."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from supremum.argument_checks import chosen, flag, real_number
from supremum.arrays.dispatch import ELEMENTWISE_OPERATIONS, DispatchedOperation
from supremum.arrays.functions.losses import LOSSES, REDUCTIONS
from supremum.arrays.promote_operands import clip, where
from supremum.arrays.wrapped import KeyedRaw
from supremum.errors import OperandError, shown
from supremum.operations import Operation


def _function(row: Operation) -> Callable[..., KeyedRaw]:
    """The function of a row."""
    operation = ELEMENTWISE_OPERATIONS[row.name]
    if row.arity == 1:

        def unary(x: Any, /) -> KeyedRaw:
            return operation.apply((x,), refuse_others=True)

        return unary

    def binary(x1: Any, x2: Any, /) -> KeyedRaw:
        return operation.apply((x1, x2), refuse_others=True)

    return binary


def _loss(row: Operation) -> Callable[..., KeyedRaw]:
    """The function of a loss, which reduces its result."""
    compute, defaults = LOSSES[row.name]

    @lru_cache(maxsize=64)
    def prepared(reduction: str, options: tuple[tuple[str, Any], ...]) -> DispatchedOperation:
        return DispatchedOperation(row, compute, {"reduction": reduction, **dict(options)})

    def loss(input: Any, target: Any, /, *, reduction: str = "mean", **options: Any) -> KeyedRaw:  # noqa: A002
        if unknown := sorted(options.keys() - defaults.keys()):
            names = ", ".join(["reduction", *defaults])
            raise OperandError(f"{row.name} has no option {shown(unknown[0])}; its options are {names}")
        for name, value in options.items():
            (flag if isinstance(defaults[name], bool) else real_number)(name, value)
        chosen("reduction", reduction, REDUCTIONS)
        return prepared(reduction, tuple({**defaults, **options}.items()))(input, target)

    plain = inspect.signature(loss)
    given = [each for each in plain.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    for name, value in defaults.items():
        given.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=type(value)))
    vars(loss)["__signature__"] = plain.replace(parameters=given)
    return loss


def _documented(row: Operation, function: Callable[..., KeyedRaw]) -> Callable[..., KeyedRaw]:
    function.__name__ = function.__qualname__ = row.name
    others = f" Also called {', '.join(row.aliases)}." if row.aliases else ""
    operands = "one operand" if row.arity == 1 else "two operands"
    function.__doc__ = f"""`{row.name}` of {operands}, elementwise.{others}

    The result has {row.result.value}, as the rules in force decide.

    Raises:
        PromotionError: if the rules refuse.
        OperandError: for anything but arrays of numbers and Python numbers.
        LibraryError: for operands from two libraries.
    """
    return function


def _functions() -> dict[str, Callable[..., KeyedRaw]]:
    found: dict[str, Callable[..., KeyedRaw]] = {"where": where, "clip": clip}
    for name, dispatched in ELEMENTWISE_OPERATIONS.items():
        row = dispatched.operation
        if name not in found:
            found[name] = _documented(row, _loss(row) if name in LOSSES else _function(row))
        found |= dict.fromkeys(row.aliases, found[name])
    return found


FUNCTIONS: dict[str, Callable[..., KeyedRaw]] = _functions()
"""The functions by name; all names of an operation have the same function."""
