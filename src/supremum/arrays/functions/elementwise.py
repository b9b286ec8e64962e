"""Functions for all elementwise rows of the table of operations, and `clip`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from supremum.argument_checks import chosen, flag, real_number
from supremum.arrays.backends import Backend, CallPlan, Raw
from supremum.arrays.functions.examples import EXAMPLES
from supremum.arrays.functions.losses import LOSSES, REDUCTIONS
from supremum.arrays.functions.promoting import PROMOTING_FUNCTIONS
from supremum.arrays.promoting_function import Arguments, PromotingFunction, one_operand, two_operands
from supremum.errors import OperandError, shown
from supremum.operations import ELEMENTWISE, Operation
from supremum.typing import ArrayLike


def _loss_arguments(name: str) -> Callable[..., Arguments]:
    """The arguments of a loss, which reduces its result."""
    defaults = LOSSES[name][1]

    def arguments(input: ArrayLike, target: ArrayLike, /, *, reduction: str = "mean", **options: Any) -> Arguments:  # noqa: A002
        if unknown := sorted(options.keys() - defaults.keys()):
            names = ", ".join(["reduction", *defaults])
            raise OperandError(f"{name} has no option {shown(unknown[0])}; its options are {names}")
        for option, value in options.items():
            (flag if isinstance(defaults[option], bool) else real_number)(option, value)
        all_options = {**defaults, **options, "reduction": chosen("reduction", reduction, REDUCTIONS)}
        return (input, target), all_options

    plain = inspect.signature(arguments)
    parameters = [each for each in plain.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    for option, value in defaults.items():
        parameters.append(
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=type(value))
        )
    vars(arguments)["__signature__"] = plain.replace(parameters=parameters)
    return arguments


def _loss(name: str) -> Callable[[Backend, CallPlan], Callable[..., Raw]]:
    compute = LOSSES[name][0]
    return lambda backend, plan: partial(compute, backend, **plan.options)


def _example(name: str) -> str:
    if name not in EXAMPLES:
        return ""
    arguments, result = EXAMPLES[name]
    return f"""
    >>> import numpy as np, supremum
    >>> supremum.ops.{name}({arguments})
    {result}
    """


def _function(row: Operation) -> PromotingFunction:
    """The function of a row."""
    if row.name in PROMOTING_FUNCTIONS:
        return PROMOTING_FUNCTIONS[row.name]
    others = f" Also called {', '.join(row.aliases)}." if row.aliases else ""
    operands = "one operand" if row.arity == 1 else "two operands"
    doc = f"""`{row.name}` of {operands}, elementwise.{others}

    The result has {row.result.value}, as the rules in force decide.

    Raises:
        PromotionError: if the rules refuse.
        OperandError: for anything but arrays of numbers and Python numbers.
        LibraryError: for operands from two libraries.
    {_example(row.name)}"""
    if row.name not in LOSSES:
        return PromotingFunction(row.name, one_operand if row.arity == 1 else two_operands, doc=doc)
    build = _loss(row.name)
    return PromotingFunction(row.name, _loss_arguments(row.name), build, doc=doc)


ELEMENTWISE_OPERATIONS: dict[str, PromotingFunction] = {name: _function(row) for name, row in ELEMENTWISE.items()}
"""All elementwise operations by name; operators and `supremum.ops` share their prepared functions."""

for _name, _symbol, _typed in (
    ("less", ">", "greater"), ("less_equal", ">=", "greater_equal"), ("equal", "==", "equal"),
    ("greater", "<", "less"), ("greater_equal", "<=", "less_equal"), ("not_equal", "!=", "not_equal"),
):  # fmt: skip
    ELEMENTWISE_OPERATIONS[_name].reflected = _symbol, ELEMENTWISE_OPERATIONS[_typed]


def operator_named(name: str) -> Callable[[Any, Any], Any]:
    """The operator of Python that is an operation, which returns `NotImplemented` for other operands.

    Args:
        name: of the operation.
    """
    return (ELEMENTWISE_OPERATIONS.get(name) or PROMOTING_FUNCTIONS[name]).operator


FUNCTIONS: dict[str, PromotingFunction] = {"clip": PROMOTING_FUNCTIONS["clip"]} | {
    name: function
    for function in ELEMENTWISE_OPERATIONS.values()
    for name in (function.name, *function.operation.aliases)
}
"""The functions by name; all names of an operation have the same function."""
