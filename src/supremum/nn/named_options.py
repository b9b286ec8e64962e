"""Options of a layer that are a function, or a name of Keras for one: activations, initializers and so on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from supremum.argument_checks import chosen
from supremum.errors import OperandError, shown


def as_option(what: str, option: object, named: Mapping[str, Callable[..., Any]], fix: str) -> Any:
    """Return the function that a name stands for; return a function as it is.

    Args:
        what: the kind of option, for errors, such as `"constraint"`.
        option: the option.
        named: functions by name.
        fix: the fix for anything else, for errors.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.
        OperandError: for anything else, a class too; a `TypeError`.

    >>> as_option("constraint", 3, {}, "MaxNorm()")
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: constraint must be a name or a function, got 3; use MaxNorm()
    """
    if isinstance(option, str):
        return named[chosen(what, option, named)]
    if isinstance(option, type) or not callable(option):
        fix = f"{option.__name__}()" if isinstance(option, type) else fix
        raise OperandError(f"{what} must be a name or a function, got {shown(option)}; use {fix}")
    return option
