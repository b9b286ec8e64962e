"""A piece of a layer's weights: numbers that another library has too, and where they are in its arrays and in ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Place: TypeAlias = tuple[str, ...]
"""The path of an array or a layer in the other library, split into its parts."""
Shape: TypeAlias = tuple[int, ...]
Role: TypeAlias = Literal["same", "sum", "zero", "counter"]


class Part(NamedTuple):
    """One of the equal parts of an array along an axis.

    Args:
        number: its number, from 0.
        of: the number of parts.
        axis: the axis.
    """

    number: int
    of: int
    axis: int = -1


@dataclass(frozen=True)
class Piece:
    """Numbers in an array of the other library ("theirs") and in a variable here ("ours"); or two names of one layer.

    Args:
        theirs: the place of their array, or of a layer there, relative to the layer that has the piece.
        ours: the path of the variable, or of a layer here, relative to the layer that has the piece.
        view: shows our numbers in their layout. It must return a view, never a copy, because loading writes to it.
        their_parts: the part of their array that has the numbers, then the part of that part, and so on.
        our_parts: likewise for ours.
        role: `"same"` for the same numbers in both; `"sum"` for numbers that loading adds to ours, and exporting writes
            as zeros; `"zero"` for a variable that they do not have, which must be zero; `"counter"` for a number that
            we do not have, which loading ignores and exporting writes as 0.
        collection: the collection of Flax linen.
        also: a pattern for the last part of the place of a layer, for layers that may have more than one name.
        unit: the path of the layer whose weights get their names together: the outermost one with a row in the tables,
            or the layer that has the variable. The plan knows it.

    >>> piece = Piece(("weight",), "kernel", np.transpose, their_parts=(Part(1, 2, 0),))
    >>> piece.their_shape((3, 4))
    (8, 3)
    >>> kernel = np.zeros((1, 2))
    >>> piece.load(np.arange(4).reshape(4, 1), kernel)
    >>> kernel
    array([[2., 3.]])
    """

    theirs: Place
    ours: str
    view: Callable[[Array], Array] = np.asarray
    their_parts: Sequence[Part] = ()
    our_parts: Sequence[Part] = ()
    role: Role = "same"
    collection: str = "params"
    also: str = ""
    unit: str = ""

    def their_shape(self, ours: Shape) -> Shape:
        """The shape of their array, computed from the shape of the variable."""
        # An array without strides needs no memory.
        shape = list(self._seen(np.broadcast_to(np.zeros((), bool), ours)).shape)
        for part in self.their_parts:
            shape[part.axis] *= part.of
        return tuple(shape)

    def load(self, theirs: Array, ours: Array) -> None:
        """Write the numbers of their array to ours."""
        numbers, seen = _part_of(theirs, self.their_parts), self._seen(ours)
        if self.role == "sum":
            seen += numbers.astype(seen.dtype)
        else:
            seen[...] = numbers

    def export(self, ours: Array, theirs: Array) -> None:
        """Write the numbers of our array to theirs, which is zero."""
        if self.role != "sum":
            _part_of(theirs, self.their_parts)[...] = self._seen(ours)

    def _seen(self, ours: Array) -> Array:
        return self.view(_part_of(ours, self.our_parts))


def _part_of(array: Array, parts: Sequence[Part]) -> Array:
    for number, of, axis in parts:
        array = np.split(array, of, axis)[number]
    return array
