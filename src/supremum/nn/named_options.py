"""Options of a layer that are a function of an array, or a name of Keras for one: regularizers and constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from supremum.argument_checks import chosen
from supremum.errors import OperandError, shown


def as_option(what: str, option: Any, named: Mapping[str, Callable[[], Any]], example: str) -> Any:
    """Make the object that a name stands for; return a function, or None, as it is.

    Args:
        what: the kind of option, for errors, such as `"constraint"`.
        option: the option.
        named: functions without arguments by name, such as classes, which make the object of the name.
        example: the name of a class, for errors.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.
        OperandError: for anything else, a class too; a `TypeError`.

    >>> as_option("constraint", 3, {}, "MaxNorm")
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: a constraint must be a name or a function of an array, got 3; use MaxNorm()
    """
    if option is None:
        return None
    if isinstance(option, str):
        return named[chosen(what, option, named)]()
    if isinstance(option, type) or not callable(option):
        name = getattr(option, "__name__", example)
        raise OperandError(f"a {what} must be a name or a function of an array, got {shown(option)}; use {name}()")
    return option
