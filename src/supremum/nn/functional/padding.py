"""The padding of windows, by name or by numbers of positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from jax import lax

from supremum.errors import ArgumentError, UnknownNameError, shown
from supremum.nn.functional.shape_checks import MOST, all_whole

Padding: TypeAlias = str | int | Sequence[int | tuple[int, int]]
"""`"SAME"`, `"VALID"` and so on, or positions to add: one number, one per dimension, or pairs of before and after."""

Pads: TypeAlias = tuple[tuple[int, int], ...]
"""The positions to add before and after, for each dimension of space."""


def as_padding(padding: Any, count: int, names: Sequence[str]) -> str | Pads:
    """Convert a padding to its name, or to a pair of numbers for each dimension of space.

    Args:
        padding: a name, a number of positions on every side, one number for each dimension, or a pair of numbers,
            before and after, for each dimension.
        count: the number of dimensions of space.
        names: the names that are allowed.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.
        ArgumentError: for anything else that is not a padding, or `"CAUSAL"` in more than one dimension; a
            `ValueError`.

    >>> as_padding(1, 2, ["SAME"]), as_padding([(2, 0)], 1, ["SAME"])
    (((1, 1), (1, 1)), ((2, 0),))
    """
    if isinstance(padding, str):
        if padding not in names:
            raise UnknownNameError("padding", padding, names)
        if padding == "CAUSAL" and count != 1:
            raise ArgumentError(f"padding='CAUSAL' needs one dimension of space, got {count}; use padding='SAME'")
        return padding
    given: Any = [padding] * count if isinstance(padding, int) else padding
    pads = [_pair(each) for each in given] if isinstance(given, (list, tuple)) else []  # pyright: ignore[reportUnknownVariableType]
    whole = tuple(pair for pair in pads if pair is not None)
    if isinstance(padding, bool) or len(pads) != count or len(whole) != count:
        raise ArgumentError(
            f"padding must be one of {', '.join(names)}, a number of positions, or pairs of numbers of at least 0 for "
            f"each of the {count} dimensions of space, got {shown(padding)}; use padding={((1, 1),) * count}"
        )
    return whole


def _pair(value: Any) -> tuple[int, int] | None:
    numbers = all_whole((value, value) if isinstance(value, int) else value)
    if numbers is None or len(numbers) != 2 or not 0 <= min(numbers) <= max(numbers) <= MOST:
        return None
    return numbers[0], numbers[1]


def pads_of(
    padding: str | Pads, sizes: Sequence[int], window: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """The positions to add before and after, for each dimension of space.

    Args:
        padding: the result of `as_padding`, except `"CIRCULAR"`, which adds positions that are not zero.
        sizes: the number of positions.
        window: the positions that the window spans, including gaps.
        strides: the steps of the window.

    >>> pads_of("SAME", (5,), (4,), (1,)), pads_of("CAUSAL", (5,), (4,), (1,))
    (((1, 2),), ((3, 0),))
    """
    if padding == "CAUSAL":
        return tuple((span - 1, 0) for span in window)
    if isinstance(padding, str):
        return tuple((int(low), int(high)) for low, high in lax.padtype_to_pads(sizes, window, strides, padding))
    return padding
