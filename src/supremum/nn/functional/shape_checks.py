"""Check shapes and axes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from supremum.errors import ArgumentError, shown

Ints: TypeAlias = int | Sequence[int]
"""One integer, or one for each axis or dimension."""


def check_shape(name: str, shape: Sequence[int], expected: Sequence[int]) -> None:
    """Raise if an array's shape differs from the expected one.

    Args:
        name: the name of the array.
        shape: its shape.
        expected: the shape that follows from the other arrays.

    Raises:
        ArgumentError: if they differ; a `ValueError`.

    >>> check_shape("bias", (3,), (4,))
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: bias must have shape (4,) to match the other arguments, got (3,)
    """
    if tuple(shape) != tuple(expected):
        raise ArgumentError(
            f"{name} must have shape {tuple(expected)} to match the other arguments, got {tuple(shape)}"
        )


MOST = 2**31 - 1
"""XLA counts steps and positions in 32 bits."""


def positive_int(name: str, value: object) -> int:
    """Check an integer of at least 1.

    Args:
        name: the name of the argument.
        value: the argument.

    Raises:
        ArgumentError: for anything else; a `ValueError`.
    """
    numbers = all_whole((value,))
    if numbers is None or numbers[0] < 1:
        raise ArgumentError(f"{name} must be an integer of at least 1, got {shown(value)}; use {name}=1")
    return numbers[0]


def positive_ints(name: str, value: object, count: int) -> tuple[int, ...]:
    """Check one integer of at least 1 for each dimension of space; a single number counts for all dimensions.

    Args:
        name: the name of the argument.
        value: one integer, or one for each dimension.
        count: the number of dimensions.

    Raises:
        ArgumentError: for anything else; a `ValueError`.

    >>> positive_ints("strides", 2, 3)
    (2, 2, 2)
    """
    numbers = all_whole(value if isinstance(value, (tuple, list)) else (value,) * count)
    if numbers is None or len(numbers) != count or not all(1 <= number <= MOST for number in numbers):
        raise ArgumentError(
            f"{name} must be an integer of at least 1, or one for each of the {count} spatial dimensions, "
            f"got {shown(value)}; use {name}={shown((1,) * count)}"
        )
    return numbers


def window_size(name: str, value: object) -> tuple[int, ...]:
    """Check the size of a window, which has one number for each dimension of space.

    Args:
        name: the name of the argument.
        value: integers of at least 1, one per dimension of space.

    Raises:
        ArgumentError: for anything else, a single number too, which leaves the number of dimensions open; a
            `ValueError`.

    >>> window_size("window", 3)
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: window must have an integer of at least 1 for each dimension of space, got 3; \
use window=(3, 3) for images, (3,) for sequences
    """
    numbers = all_whole(value)
    if numbers and all(number >= 1 for number in numbers):
        return numbers
    one = all_whole((value,))
    size = one[0] if one and one[0] >= 1 else 3
    raise ArgumentError(
        f"{name} must have an integer of at least 1 for each dimension of space, got {shown(value)}; "
        f"use {name}=({size}, {size}) for images, ({size},) for sequences"
    )


def axis_numbers(name: str, value: object) -> tuple[int, ...]:
    """Convert one axis or several to a tuple; negative axes stay negative.

    Args:
        name: the name of the argument.
        value: an integer, or a tuple or list of integers.

    Raises:
        ArgumentError: for anything else; a `ValueError`.
    """
    numbers = all_whole(value if isinstance(value, (tuple, list)) else (value,))
    if numbers is None:
        raise ArgumentError(f"{name} must be an axis or a tuple of axes, got {shown(value)}; use {name}=(-1,)")
    return numbers


def as_axes(name: str, axes: object, ndim: int) -> tuple[int, ...]:
    """Convert axes to numbers from 0, in the given order.

    Args:
        name: the name of the argument.
        axes: one axis or several; negative axes count from the end.
        ndim: the number of axes of the array.

    Raises:
        ArgumentError: for an axis that the array does not have, or a repeated axis; a `ValueError`.

    >>> as_axes("axes", (-1, 0), 3)
    (2, 0)
    """
    numbers = axis_numbers(name, axes)
    missing = [axis for axis in numbers if not -ndim <= axis < ndim]
    if missing and ndim == 0:
        raise ArgumentError(f"{name} must be an axis of the array, which has none, got {shown(axes)}")
    if missing:
        raise ArgumentError(
            f"{name} must be within {-ndim} to {ndim - 1} for an array of {ndim} dimensions, got {shown(axes)}"
        )
    positive = tuple(axis % ndim for axis in numbers)
    if len(set(positive)) != len(positive):
        raise ArgumentError(f"{name} must be different axes, got {shown(axes)}, which repeats one of the {ndim}")
    return positive


def all_whole(value: object) -> tuple[int, ...] | None:
    """The integers of a tuple or list; None for anything else, or if it has other items."""
    bools = (bool, np.bool)  # before NumPy 2.3, its bools are indices too
    if not isinstance(value, (tuple, list)) or any(isinstance(each, bools) for each in value):  # pyright: ignore[reportUnknownVariableType]
        return None
    try:
        return tuple(map(operator.index, cast("Sequence[Any]", value)))
    except TypeError:
        return None


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another shape: each axis has the same length or length 1.

    >>> broadcasts((3, 1), (2, 3, 4)), broadcasts((2, 3), (1, 3))
    (True, False)
    """
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))


def check_broadcasts(name: str, shape: tuple[int, ...], to: tuple[int, ...]) -> None:
    """Raise if an array does not broadcast to the shape of the inputs `x`.

    Args:
        name: the name of the array.
        shape: its shape.
        to: the shape of `x`.

    Raises:
        ArgumentError: if it does not; a `ValueError`.

    >>> check_broadcasts("mean", (2,), (4, 3))
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: mean must broadcast to the shape of x, (4, 3), got (2,)
    """
    if not broadcasts(shape, to):
        raise ArgumentError(f"{name} must broadcast to the shape of x, {to}, got {shape}")
