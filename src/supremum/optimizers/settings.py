"""The settings of optimizers other than hyperparameters: their checks, and their key in a compiled step."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, cast

import numpy as np

from supremum.argument_checks import flag, is_iterable, real_within, whole_number
from supremum.errors import OperandError, shown
from supremum.mixed_precision import storage_of_moments, storage_of_weights
from supremum.nn.functional import MOST


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
    row = storage_of_moments(dtype)
    return dtype if row is None else str(row)


def _checked_weights(weights: Any) -> str | None:
    if weights is not None:
        storage_of_weights(weights)
    return weights


def _checked_count(name: str, number: Any) -> int | None:
    return None if number is None else whole_number(name, number, 1, MOST)


CHECKS: dict[str, Callable[[Any], Any]] = {
    "gradient_transformers": _checked_transformers,
    "gradient_aggregator": _checked_aggregator,
    "amsgrad": partial(flag, "amsgrad"),
    "use_ema": partial(flag, "use_ema"),
    "ema_momentum": lambda momentum: real_within("ema_momentum", momentum, 0, 1),
    "ema_overwrite_frequency": partial(_checked_count, "ema_overwrite_frequency"),
    "gradient_accumulation_steps": partial(_checked_count, "gradient_accumulation_steps"),
    "nesterov": partial(flag, "nesterov"),
    "centered": partial(flag, "centered"),
    "mu_dtype": _checked_dtype,
    "nu_dtype": _checked_dtype,
    "weights": _checked_weights,
}
"""Checks of attributes: each function returns the value to store, or raises."""


class Identity:
    """A hashable reference to an object; it compares by identity and keeps the object alive."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held: object = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)


def hashable(value: Any) -> Hashable:
    """Return a hashable stand-in, compared by value for plain data and by identity for unhashable objects.

    >>> (
    ...     hashable([1, {"a": 2.0}]) == hashable([1, {"a": 2.0}]),
    ...     hashable(1) == hashable(True),
    ... )
    (True, False)
    """
    kind = type(value)
    if isinstance(value, (list, tuple)):
        return (kind, tuple(map(hashable, cast("list[Any]", value))))
    if isinstance(value, dict):
        return (kind, tuple((key, hashable(item)) for key, item in cast("dict[Any, Any]", value).items()))
    if isinstance(value, np.ndarray):
        return (kind, value.dtype.str, value.shape, value.tobytes())
    try:
        hash(value)
    except TypeError:
        return Identity(value)
    return (kind, value)
