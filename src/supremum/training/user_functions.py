"""Losses and metrics from users: objects, names or functions, and notes on the errors of these functions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from supremum.errors import OperandError, SupremumError, UnknownNameError, shown
from supremum.nn import described


def resolve(
    kind: str,
    value: object,
    classes: tuple[type, ...],
    named: Mapping[str, Callable[[], Any]],
    wrap: Callable[[Any], Any],
) -> Any:
    """Convert an argument to an object: return an object as is, create one by name, or wrap a function.

    Args:
        kind: `"loss"` or `"metric"`.
        value: the argument.
        classes: the classes of objects that are returned as they are.
        named: functions that create an object, by name.
        wrap: wraps a function of labels and outputs in an object.

    Raises:
        UnknownNameError: for an unknown name, with similar ones; a `ValueError`.
        OperandError: for anything else; a `TypeError`.
    """
    if isinstance(value, classes):
        return value
    if isinstance(value, str):
        if value not in named:
            raise UnknownNameError(kind, value, named)
        return named[value]()
    if isinstance(value, type):
        raise OperandError(f"a {kind} must be an object, got the class {value.__name__}; use {value.__name__}()")
    if not callable(value):
        name = kind.capitalize()
        raise OperandError(f"a {kind} must be a name, a {name} or a function of y_true and y_pred, got {shown(value)}")
    return wrap(value)


@contextmanager
def note_place(place: str, **inputs: object) -> Generator[None]:
    """Add a note to errors that are not ours, saying where they were raised and with which inputs.

    Args:
        place: where in training the block runs.
        inputs: its inputs, by name.

    >>> try:
    ...     with note_place("in the loss mine", y_true=1.0):
    ...         raise KeyError("mine")
    ... except KeyError as error:
    ...     print(error.__notes__)
    ['in the loss mine, given y_true=1.0']
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, SupremumError):
            error.add_note(f"{place}, given {described((), inputs)}")
        raise
