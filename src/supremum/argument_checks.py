"""Checks of arguments: each returns the argument, or raises with its name, the accepted values and the given one."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from supremum.errors import ArgumentError, OperandError, UnknownNameError, shown
from supremum.typing import PyTree

T = TypeVar("T")
# The deepest nesting of containers; JAX flattens trees recursively, and fails at about 900 levels.
DEEPEST = 100


def flag(name: str, value: object) -> bool:
    """Check that a value is a bool, of Python or NumPy.

    Raises:
        OperandError: if it is not; a `TypeError`.

    >>> flag("nesterov", "no")
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: nesterov must be True or False, got 'no'
    """
    number = _item(name, value)
    if not isinstance(number, bool):
        raise OperandError(f"{name} must be True or False, got {shown(value)}")
    return number


def chosen(what: str, value: object, choices: Iterable[str]) -> Any:
    """Check that a value is one of a few names.

    Raises:
        UnknownNameError: if it is not; the message suggests similar names; a `ValueError`.

    >>> chosen("mode", "maxx", ("auto", "min", "max"))
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown mode 'maxx': did you mean 'max'?
    """
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise UnknownNameError(what, value, choices)
    return value


def text(name: str, value: object) -> str:
    """Check that a value is a string.

    Raises:
        OperandError: if it is not; a `TypeError`.
    """
    return instance(name, value, str, "a str")


def mapping(name: str, value: object, example: str) -> Any:
    """Check that a value is a mapping, whatever its entries.

    Args:
        name: the name of the argument.
        value: the argument.
        example: a valid value.

    Raises:
        OperandError: if it is not; a `TypeError`.

    >>> mapping("arrays", 2, "{'kernel': kernel}")
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: arrays must be a mapping, got 2; use arrays={'kernel': kernel}
    """
    if not isinstance(value, Mapping):
        raise OperandError(f"{name} must be a mapping, got {shown(value)}; use {name}={example}")
    return cast("Any", value)


def iterable(name: str, value: object, what: str) -> Any:
    """Check that a value is iterable, whatever its items.

    Args:
        name: the name of the argument.
        value: the argument.
        what: the items, in the plural.

    Raises:
        OperandError: if the value is not iterable, or is a string; a `TypeError`.

    >>> iterable("layers", None, "layers")
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: layers must be a list of layers, got None
    """
    if not is_iterable(value):
        raise OperandError(f"{name} must be a list of {what}, got {shown(value)}")
    return value


def is_iterable(value: object) -> bool:
    """Whether a value is iterable; strings, bytes and arrays without dimensions do not count."""
    return not isinstance(value, (str, bytes)) and getattr(value, "ndim", None) != 0 and isinstance(value, Iterable)


def function(name: str, value: object, example: str) -> Callable[..., Any]:
    """Check that a value is callable.

    Args:
        name: the name of the argument.
        value: the argument.
        example: a valid value.

    Raises:
        OperandError: if it is not; a `TypeError`.

    >>> function("activation", None, "jnp.tanh")
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: activation must be a function, got None; use activation=jnp.tanh
    """
    if not callable(value):
        raise OperandError(f"{name} must be a function, got {shown(value)}; use {name}={example}")
    return value


def instance(name: str, value: object, kind: type[T], what: str) -> T:
    """Check that a value is an instance of a class.

    Args:
        name: the name of the argument.
        value: the argument.
        kind: the class.
        what: the accepted values, in words.

    Raises:
        OperandError: if it is not; a `TypeError`.

    >>> instance("layer", None, int, "a layer, such as nn.Dense(10)")
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: layer must be a layer, such as nn.Dense(10), got None
    """
    if not isinstance(value, kind):
        raise OperandError(f"{name} must be {what}, got {shown(value)}")
    return value


def real_number(name: str, value: object) -> float:
    """Convert a real number of any type, also a 0-d array, to a float; a number too large for a float becomes infinite.

    Raises:
        OperandError: if the value is not a real number, or is a bool; the message names the argument.

    >>> import numpy as np
    >>> real_number("scale", np.float16(2.0))
    2.0
    """
    number = _item(name, value)
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise OperandError(f"{name} must be a number, got {shown(value)}")
    try:
        return float(number)
    except OverflowError:
        return math.inf if cast("Any", number) > 0 else -math.inf


def real_within(name: str, value: object, smallest: float, largest: float, bounds: str = "") -> float:
    """Convert a real number of any type to a float, and check its bounds.

    Args:
        name: the name of the argument.
        value: the argument.
        smallest: the lower bound, included.
        largest: the upper bound, included.
        bounds: the bounds in the message; by default `"from 0 to 1"` with the given numbers.

    Raises:
        OperandError: if the value is not a real number, or is a bool.
        ArgumentError: if the value is out of bounds or NaN; a `ValueError`.

    >>> real_within("momentum", 2, 0, 1)
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: momentum must be from 0 to 1, got 2
    """
    number = real_number(name, value)
    if not smallest <= number <= largest:
        raise ArgumentError(f"{name} must be {bounds or f'from {smallest} to {largest}'}, got {shown(value)}")
    return number


def whole_number(name: str, value: object, smallest: int, largest: int) -> int:
    """Convert an integer of any type to an `int`, and check its bounds.

    Raises:
        OperandError: if the value is not an integer, or is a bool.
        ArgumentError: if the value is out of bounds; a `ValueError`.

    >>> import numpy as np
    >>> whole_number("period", np.int8(3), 1, 10)
    3
    """
    number = _item(name, value)
    if isinstance(number, bool) or not isinstance(number, numbers.Integral):
        raise OperandError(f"{name} must be a whole number, got {shown(value)}")
    number = int(number)
    if not smallest <= number <= largest:
        # Python refuses to print integers of more than 4300 digits, and 400 digits are unreadable.
        raise ArgumentError(f"{name} must be from {smallest} to {largest}, got {shown(number)}")
    return number


def _item(name: str, value: object) -> Any:
    """The number in an array without dimensions of any library, or the value itself."""
    if getattr(value, "ndim", None) != 0 or not hasattr(value, "item"):
        return value
    array: Any = value
    try:
        return array.item()
    except TypeError as error:  # JAX raises this for a traced value
        raise OperandError(f"{name} must be known before tracing, got {value}; use a Python number") from error


def known_keys(what: str, value: object, known: Iterable[str], required: Iterable[str] | None = None) -> dict[str, Any]:
    """Check the keys of a mapping, and return it as a dict.

    Args:
        what: a description of the mapping, such as `"config of a policy"`.
        value: the mapping.
        known: every key that it may have.
        required: the keys that it must have; None for all of them.

    Raises:
        OperandError: if `value` is not a mapping.
        UnknownNameError: if a key is unknown; the message suggests similar keys; a `ValueError`.
        ArgumentError: if keys are missing; a `ValueError`.
    """
    if not isinstance(value, Mapping):
        raise OperandError(f"a {what} must be a mapping, got {shown(value)}")
    entries = dict(cast("Mapping[Any, Any]", value))
    known = tuple(known)
    for key in entries:
        if key not in known:
            raise UnknownNameError(f"key of a {what}", key, known)
    missing = [key for key in (known if required is None else required) if key not in entries]
    if missing:
        raise ArgumentError(f"a {what} must have {' and '.join(map(repr, missing))}, got {shown(list(entries))}")
    return entries


def pytree(name: str, tree: PyTree) -> PyTree:
    """Check that JAX can flatten a tree of containers.

    Args:
        name: the name of the tree in error messages.
        tree: anything; only lists, tuples and dicts are searched.

    Raises:
        ArgumentError: if a container contains itself, which crashes JAX, if the tree has more than 100 levels, or if a
            dict has keys that cannot be sorted; a `ValueError`.

    >>> loop = []
    >>> loop.append(loop)
    >>> pytree("x", {"a": loop})
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: x contains a list that contains itself
    >>> pytree("x", {"a": 1, 2: 3})
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: x contains a dict with unsortable keys, 'a', 2; use strings for all of them
    """
    _check_tree(name, tree, ())
    return tree


def _check_tree(name: str, tree: PyTree, above: tuple[int, ...]) -> None:
    kind = cast("type[object]", type(tree))
    if not issubclass(kind, (list, tuple, dict)):
        return
    if id(tree) in above:
        raise ArgumentError(f"{name} contains a {kind.__name__} that contains itself")
    if len(above) == DEEPEST:
        raise ArgumentError(f"{name} must be nested at most {DEEPEST} levels deep")
    above = (*above, id(tree))
    if issubclass(kind, dict):
        try:
            sorted(tree)
        except TypeError as error:
            keys = f"unsortable keys, {', '.join(map(shown, [*tree][:4]))}"
            raise ArgumentError(f"{name} contains a dict with {keys}; use strings for all of them") from error
        tree = [*tree.values()]
    for each in tree:
        _check_tree(name, each, above)
