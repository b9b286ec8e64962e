"""The settings of optimizers other than hyperparameters: their checks, and their key in a compiled step."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, cast

import numpy as np

from supremum.argument_checks import is_iterable, whole_number
from supremum.errors import OperandError, shown
from supremum.mixed_precision import storage_of_moments, storage_of_weights
from supremum.nn.functional import MOST
from supremum.typing import DTypeLike


class Setting:
    """An attribute of an optimizer that is compiled into its steps; its value is checked when it is set.

    Args:
        check: a function of the name and a value that returns the value to store, or raises.
    """

    def __init__(self, check: Callable[..., Any]) -> None:
        self._check = check

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, optimizer: Any, owner: type | None = None) -> Any:
        return self if optimizer is None else optimizer.settings[self._name]

    def __set__(self, optimizer: Any, value: object) -> None:
        optimizer.set_setting(self._name, value, self._check)


def check_transformers(name: str, functions: Iterable[Any]) -> tuple[Any, ...]:
    """Return functions of gradients as a tuple, which later changes of the given list do not change."""
    several = tuple(functions) if is_iterable(functions) else (None,)
    if not all(map(callable, several)):
        raise OperandError(f"{name} must be a list of functions of (gradient, variable) pairs, got {shown(functions)}")
    return several


def check_aggregator(name: str, function: object) -> Any:
    """Return a function of gradients, or None."""
    if function is not None and not callable(function):
        raise OperandError(f"{name} must be a function of (gradient, variable) pairs, got {shown(function)}")
    return function


def check_count(name: str, number: object) -> int | None:
    """Return a number of steps, or None."""
    return None if number is None else whole_number(name, number, 1, MOST)


def check_moment_dtype(name: str, dtype: DTypeLike | None) -> str | None:
    """Return the name of how moments are stored, or None."""
    del name
    return None if dtype is None else str(storage_of_moments(dtype) or dtype)


def check_weights(name: str, weights: str | None) -> str | None:
    """Return the name of how narrow weights are stored, or None."""
    del name
    if weights is not None:
        storage_of_weights(weights)
    return weights


class Identity:
    """A hashable reference to an object; it compares by identity and keeps the object alive."""

    __slots__ = ("target",)

    def __init__(self, target: object) -> None:
        self.target: object = target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.target is other.target

    def __hash__(self) -> int:
        return id(self.target)


def hashable(value: object) -> Hashable:
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
