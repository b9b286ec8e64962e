"""Checks of shapes and axes, with errors that say what came, what was expected, and a fix."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

from supremum.errors import ArgumentError, shown

Ints: TypeAlias = int | Sequence[int]
"""One whole number, or one for each axis or dimension."""


def check_shape(name: str, given: Sequence[int], expected: Sequence[int]) -> None:
    """Raise if an array's shape differs from the expected one.

    Args:
        name: what the array is called.
        given: its shape.
        expected: the shape that follows from the other arrays.

    Raises:
        ArgumentError: if they differ; a `ValueError`.

    >>> check_shape("bias", (3,), (4,))
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: bias has shape (3,), where the other arguments take one of shape (4,)
    """
    if tuple(given) != tuple(expected):
        raise ArgumentError(
            f"{name} has shape {tuple(given)}, where the other arguments take one of shape {tuple(expected)}"
        )


def check_product(x: Sequence[int], kernel: Sequence[int], bias: Any) -> None:
    """Raise if a matrix product over the last axis cannot have these shapes.

    Args:
        x: the shape of the inputs.
        kernel: the shape of the weights.
        bias: an array, or None.

    Raises:
        ArgumentError: if they do not fit together; a `ValueError`.
    """
    if not x or len(kernel) != 2 or x[-1] != kernel[0]:
        raise ArgumentError(
            f"inputs of shape (..., n) take a kernel of shape (n, m), not {tuple(x)} and {tuple(kernel)}"
        )
    if bias is not None:
        check_shape("bias", bias.shape, kernel[1:])


MOST = 2**31 - 1
"""XLA counts steps and positions in 32 bits."""


def positive_int(name: str, value: Any) -> int:
    """A whole number of at least one.

    Args:
        name: its name.
        value: what was given.

    Raises:
        ArgumentError: if it is none; a `ValueError`.
    """
    number = _whole(value)
    if number is None or number < 1:
        raise ArgumentError(f"{name} is a whole number of at least 1, not {shown(value)}: give {name}=1")
    return number


def positive_ints(name: str, value: Any, count: int) -> tuple[int, ...]:
    """A whole number of at least one for each dimension of space; one number stands for all of them.

    Args:
        name: their name.
        value: a number, or as many as there are dimensions.
        count: how many dimensions there are.

    Raises:
        ArgumentError: for anything else; a `ValueError`.

    >>> positive_ints("strides", 2, 3)
    (2, 2, 2)
    """
    numbers = all_whole(value)
    if numbers is None:
        whole = _whole(value)
        numbers = None if whole is None else (whole,) * count
    if numbers is None or len(numbers) != count or not all(1 <= number <= MOST for number in numbers):
        raise ArgumentError(
            f"{name} is a whole number of at least 1, or one for each of the {count} dimensions of space, "
            f"not {shown(value)}: give {name}={shown((1,) * count)}"
        )
    return numbers


def window_size(name: str, value: Any) -> tuple[int, ...]:
    """The size of a window, whose length says how many dimensions of space there are.

    Args:
        name: its name.
        value: one whole number of at least 1 per dimension of space.

    Raises:
        ArgumentError: for anything else, a single number for one, of which no dimensions follow; a `ValueError`.

    >>> window_size("window", 3)
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: window has a number for each dimension of space, not 3: give window=(3, 3) for \
images, (3,) for sequences
    """
    numbers = all_whole(value)
    if numbers and all(number >= 1 for number in numbers):
        return numbers
    one = _whole(value)
    one = one if one is not None and one >= 1 else 3
    raise ArgumentError(
        f"{name} has a number for each dimension of space, not {shown(value)}: "
        f"give {name}=({one}, {one}) for images, ({one},) for sequences"
    )


def axis_numbers(name: str, value: Any) -> tuple[int, ...]:
    """The numbers of one axis or several, as a tuple, those below 0 as given.

    Args:
        name: their name.
        value: a number, or a tuple or list of them.

    Raises:
        ArgumentError: for anything else; a `ValueError`.
    """
    numbers = all_whole(value)
    if numbers is None:
        whole = _whole(value)
        if whole is None:
            raise ArgumentError(f"{name} is an axis or a tuple of axes, not {shown(value)}: give {name}=(-1,)")
        numbers = (whole,)
    return numbers


def as_axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes as numbers from 0, in the order given.

    Args:
        name: their name.
        axes: an axis or several, those below 0 counted from the last.
        ndim: how many axes the array has.

    Raises:
        ArgumentError: for an axis that the array does not have, or one named twice; a `ValueError`.

    >>> as_axes("axes", (-1, 0), 3)
    (2, 0)
    """
    numbers = axis_numbers(name, axes)
    missing = [axis for axis in numbers if not -ndim <= axis < ndim]
    if missing:
        raise ArgumentError(
            f"{name}={shown(axes)} names axis {missing[0]} of an array of {ndim} dimensions, whose axes are "
            f"{-ndim} to {ndim - 1}"
        )
    found = tuple(axis % ndim for axis in numbers)
    if len(set(found)) != len(found):
        raise ArgumentError(f"{name}={shown(axes)} names an axis of an array of {ndim} dimensions twice")
    return found


def all_whole(value: Any) -> tuple[int, ...] | None:
    """The whole numbers of a tuple or list, or None if it has anything else in it."""
    if not isinstance(value, (tuple, list)):
        return None
    numbers = [_whole(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return None if None in numbers else tuple(number for number in numbers if number is not None)


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array of a shape can be read as one of another, each axis being of the same length or of length 1.

    >>> broadcasts((3, 1), (2, 3, 4)), broadcasts((2, 3), (1, 3))
    (True, False)
    """
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))
