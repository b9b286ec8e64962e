"""Convert arguments to losses and metrics: names, functions and objects."""

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
    """Convert an argument to an object: return an object as is, create one by name, or wrap a function.

    Args:
        kind: `"loss"` or `"metric"`.
        given: the argument.
        classes: the classes of objects that are returned as they are.
        named: functions that create an object, by name.
        from_function: wraps a function of labels and outputs in an object.

    Raises:
        UnknownNameError: for an unknown name, with similar ones; a `ValueError`.
        OperandError: for anything else; a `TypeError`.
    """
    if isinstance(given, classes):
        return given
    if isinstance(given, str):
        if given not in named:
            raise UnknownNameError(kind, given, named)
        return named[given]()
    if isinstance(given, type):
        raise OperandError(f"a {kind} must be an object, got the class {given.__name__}; use {given.__name__}()")
    if not callable(given):
        name = kind.capitalize()
        raise OperandError(f"a {kind} must be a name, a {name} or a function of y_true and y_pred, got {shown(given)}")
    return from_function(given)
