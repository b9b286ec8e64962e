"""The settings of optimizers other than hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypedDict

from supremum.argument_checks import flag, is_iterable
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import Kind, as_format
from supremum.optimizers.gradients import Transformer
from supremum.optimizers.hyperparameters import Hyper


class OptimizerOptions(TypedDict, total=False):
    """The keyword arguments of every optimizer; `Optimizer` documents them."""

    clipnorm: Hyper | None
    clipvalue: Hyper | None
    global_clipnorm: Hyper | None
    gradient_transformers: Iterable[Transformer]
    gradient_aggregator: Transformer | None


class GradientDescentOptions(OptimizerOptions, total=False):
    """The keyword arguments of every optimizer with a learning rate."""

    weight_decay: Hyper | None


def _checked_transformers(functions: Any) -> tuple[Any, ...]:
    # Later changes of the given list have no effect on the tuple.
    found = tuple(functions) if is_iterable(functions) else (None,)
    if not all(map(callable, found)):
        raise OperandError(
            f"gradient_transformers must be a list of functions of (gradient, variable) pairs, got {shown(functions)}"
        )
    return found


def _checked_aggregator(function: Any) -> Any:
    if function is not None and not callable(function):
        raise OperandError(
            f"gradient_aggregator must be a function of (gradient, variable) pairs, got {shown(function)}"
        )
    return function


def _checked_dtype(dtype: Any) -> str | None:
    if dtype is None:
        return None
    row = as_format(dtype)
    if row.kind is not Kind.FLOAT or not row.zero:
        raise ArgumentError(f"slots need a real floating dtype with a zero, got {row}: use 'bfloat16'")
    return str(row)


CHECKS: dict[str, Callable[[Any], Any]] = {
    "gradient_transformers": _checked_transformers,
    "gradient_aggregator": _checked_aggregator,
    "nesterov": partial(flag, "nesterov"),
    "centered": partial(flag, "centered"),
    "mu_dtype": _checked_dtype,
    "nu_dtype": _checked_dtype,
}
"""Checks of attributes: each function returns the value to store, or raises."""
