"""What optimizers are set to, apart from hyperparameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

from supremum.argument_checks import is_iterable
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import Kind, as_format
from supremum.optimizers.gradients import Transformer
from supremum.optimizers.hyperparameters import Hyper


class OptimizerOptions(TypedDict, total=False):
    """What every optimizer takes by name; `Optimizer` says what it means."""

    clipnorm: Hyper | None
    clipvalue: Hyper | None
    global_clipnorm: Hyper | None
    gradient_transformers: Iterable[Transformer]
    gradient_aggregator: Transformer | None


class DescentOptions(OptimizerOptions, total=False):
    """What every optimizer with a learning rate takes by name besides."""

    weight_decay: Hyper | None


def checked_functions(functions: Any) -> tuple[Any, ...]:
    """Gradient transformers as a tuple: changing the list they came in changes nothing later.

    Raises:
        OperandError: for what are no functions.
    """
    found = tuple(functions) if is_iterable(functions) else (None,)
    if not all(map(callable, found)):
        raise OperandError(
            f"gradient_transformers are functions of (gradient, variable) pairs in a list, not {shown(functions)}"
        )
    return found


def checked_function(function: Any) -> Any:
    """A gradient aggregator, or None.

    Raises:
        OperandError: for what is neither.
    """
    if function is not None and not callable(function):
        raise OperandError(f"gradient_aggregator is a function of (gradient, variable) pairs, not {shown(function)}")
    return function


def checked_flag(flag: Any) -> bool:
    """A bool.

    Raises:
        OperandError: for anything else.
    """
    if not isinstance(flag, bool):
        raise OperandError(f"this is True or False, not {shown(flag)}")
    return flag


def checked_dtype(dtype: Any) -> str | None:
    """The name of a dtype to keep slots in, or None for the one they are computed in.

    Raises:
        ArgumentError: for one that is not real floating, or has no zero to start from.
        UnknownDtypeError: for what is no dtype.
    """
    if dtype is None:
        return None
    row = as_format(dtype)
    if row.kind is not Kind.FLOAT or not row.zero:
        raise ArgumentError(f"slots are kept in a real floating dtype that has a zero, not {row}: give 'bfloat16'")
    return str(row)


CHECKS = {
    "gradient_transformers": checked_functions,
    "gradient_aggregator": checked_function,
    "nesterov": checked_flag,
    "centered": checked_flag,
    "mu_dtype": checked_dtype,
    "nu_dtype": checked_dtype,
}
"""The check of each attribute that has one."""
