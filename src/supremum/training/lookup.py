"""Losses and metrics by name, as functions and as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from supremum.errors import OperandError, UnknownNameError, shown

T = TypeVar("T")


def looked_up(
    kind: str,
    given: Any,
    classes: tuple[type[Any], ...],
    named: Mapping[str, Callable[[], Any]],
    from_function: Callable[[Any], T],
) -> Any | T:
    """What an argument stands for: an object as it is, a new one of a name, or one made of a function.

    Args:
        kind: `"loss"` or `"metric"`.
        given: what was given.
        classes: of objects that are returned as they are.
        named: what makes an object, by name.
        from_function: makes an object of a function of labels and outputs.

    Raises:
        UnknownNameError: for an unknown name, with the near ones; a `ValueError`.
        OperandError: for anything else; a `TypeError`.
    """
    if isinstance(given, classes):
        return given
    if isinstance(given, str):
        if given not in named:
            raise UnknownNameError(kind, given, named)
        return named[given]()
    if isinstance(given, type):
        raise OperandError(f"a {kind} must be an object, got the class {given.__name__}: give {given.__name__}()")
    if not callable(given):
        name = kind.capitalize()
        raise OperandError(f"a {kind} must be a name, a {name} or a function of y_true and y_pred, got {shown(given)}")
    return from_function(given)
