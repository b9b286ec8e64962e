"""Losses, metrics and steps from users: objects, names, functions or methods, and notes on their errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from supremum.errors import ArgumentError, OperandError, SupremumError, UnknownNameError, shown
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


def overridden_step(model: Any, base: type) -> Callable[[Any, Any], Any] | None:
    """Return the `train_step` that the class of a model overrides, or None.

    Args:
        model: the model.
        base: the class with the method to override.

    Raises:
        ArgumentError: for a `train_step` with other arguments, and for a method `test_step` or `predict_step`, which
            would never be called; a `ValueError`.
    """
    name = type(model).__name__
    for unused in ("test_step", "predict_step"):
        if hasattr(model, unused):
            raise ArgumentError(
                f"{name}.{unused} is never called: override compute_loss(x, y, y_pred, sample_weight, training) or "
                "call, or write the loop yourself with model.test_on_batch or model.predict_on_batch"
            )
    if type(model).train_step is vars(base)["train_step"]:
        return None
    if len(inspect.signature(model.train_step).parameters) != 2:
        raise ArgumentError(
            f"{name}.train_step must take the state and the batch, and return the next state: write "
            "def train_step(self, state, batch)"
        )
    return model.train_step


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
