"""Axes as users name them, counted from the front."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from supremum.errors import ArgumentError


def canonical_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front, in ascending order.

    Args:
        axes: an axis or several, negative ones counted from the end.
        ndim: the number of axes there are.

    Raises:
        ArgumentError: for an axis that is no integer, that is not there or that is named twice; a `ValueError`.

    >>> canonical_axes((-1, 1), 4)
    (1, 3)
    """
    given: tuple[Any, ...] = tuple(axes) if isinstance(axes, Iterable) else (axes,)  # pyright: ignore[reportUnknownVariableType]
    found: set[int] = set()
    for each in given:
        try:
            axis = operator.index(each)
        except TypeError:
            raise ArgumentError(f"axes are integers, such as axes=(-1,); {each!r} is none") from None
        if not -ndim <= axis < ndim:
            raise ArgumentError(f"axis {axis} is not there: {ndim} axes are numbered from {-ndim} to {ndim - 1}")
        if axis % ndim in found:
            raise ArgumentError(f"axes {given} name axis {axis} twice")
        found.add(axis % ndim)
    return tuple(sorted(found))
