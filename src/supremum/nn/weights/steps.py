"""Reversible conversions of weights between the layout of another library ("theirs") and the one here ("ours")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from supremum.errors import ArgumentError
from supremum.formats import at_least_float32

Array: TypeAlias = np.ndarray[Any, Any]
Arrays: TypeAlias = Sequence[Array]


class Step(Protocol):
    """A conversion of a list of arrays and its inverse."""

    def load(self, arrays: Arrays) -> Arrays:
        """Convert arrays of the other library."""
        ...

    def export(self, arrays: Arrays) -> Arrays:
        """Convert arrays back."""
        ...


@dataclass(frozen=True)
class MoveAxes:
    """Move axes of each array, as `numpy.moveaxis` does.

    Args:
        theirs: the places of the axes in the other library.
        ours: their places here.

    >>> step = MoveAxes((0, 1), (-1, -2))  # channels first to channels last
    >>> [array.shape for array in step.load([np.zeros((8, 3, 5, 7))])]
    [(5, 7, 3, 8)]
    >>> [array.shape for array in step.export([np.zeros((5, 7, 3, 8))])]
    [(8, 3, 5, 7)]
    """

    theirs: tuple[int, ...]
    ours: tuple[int, ...]

    def load(self, arrays: Arrays) -> Arrays:
        """Move the axes to their places here."""
        return [np.moveaxis(array, self.theirs, self.ours) for array in arrays]

    def export(self, arrays: Arrays) -> Arrays:
        """Move the axes back."""
        return [np.moveaxis(array, self.ours, self.theirs) for array in arrays]


@dataclass(frozen=True)
class FlipWindow:
    """Reverse all axes of each kernel except the last two, which are channels and filters."""

    def load(self, arrays: Arrays) -> Arrays:
        """Reverse the axes."""
        return [np.flip(array, tuple(range(array.ndim - 2))) for array in arrays]

    def export(self, arrays: Arrays) -> Arrays:
        """Reverse the axes back."""
        return self.load(arrays)


@dataclass(frozen=True)
class Reshape:
    """Change the shape of each array.

    Args:
        theirs: the shape in the other library.
        ours: the shape here.
    """

    theirs: tuple[int, ...]
    ours: tuple[int, ...]

    def load(self, arrays: Arrays) -> Arrays:
        """Give the arrays the shape they have here."""
        return [array.reshape(self.ours) for array in arrays]

    def export(self, arrays: Arrays) -> Arrays:
        """Give the arrays the shape they have in the other library."""
        return [array.reshape(self.theirs) for array in arrays]


@dataclass(frozen=True)
class Split:
    """Split one array of the other library into equal parts along an axis.

    Args:
        parts: the number of parts.
        axis: the axis.
    """

    parts: int
    axis: int = -1

    def load(self, arrays: Arrays) -> Arrays:
        """Split the array."""
        return np.split(arrays[0], self.parts, self.axis)

    def export(self, arrays: Arrays) -> Arrays:
        """Join the parts."""
        return [np.concatenate(arrays, self.axis)]


@dataclass(frozen=True)
class Join:
    """Join arrays of equal shapes of the other library along their last axis.

    Args:
        parts: the number of arrays.

    >>> Join(2).load([np.zeros(2), np.ones(2)])
    [array([0., 0., 1., 1.])]
    >>> Join(2).export([np.arange(4.0)])
    [array([0., 1.]), array([2., 3.])]
    """

    parts: int

    def load(self, arrays: Arrays) -> Arrays:
        """Join the arrays."""
        return Split(self.parts).export(arrays)

    def export(self, arrays: Arrays) -> Arrays:
        """Split the array."""
        return Split(self.parts).load(arrays)


@dataclass(frozen=True)
class SwapFirstGates:
    """Swap the first two of three gates along the last axis, for libraries that put the update gate first."""

    def load(self, arrays: Arrays) -> Arrays:
        """Swap the gates."""
        gates = [np.split(array, 3, -1) for array in arrays]
        return [np.concatenate([second, first, third], -1) for first, second, third in gates]

    def export(self, arrays: Arrays) -> Arrays:
        """Swap the gates back."""
        return self.load(arrays)


@dataclass(frozen=True)
class Unstack:
    """Take the rows of one array of the other library as separate arrays."""

    def load(self, arrays: Arrays) -> Arrays:
        """Take the rows."""
        return list(arrays[0])

    def export(self, arrays: Arrays) -> Arrays:
        """Stack the rows."""
        return [np.stack(arrays)]


def _sum(a: Array, b: Array) -> Array:
    wide = at_least_float32(a.dtype)
    return a.astype(wide) + b.astype(wide)


@dataclass(frozen=True)
class AddBiases:
    """Add the biases of inputs and state, which the cells here have in one; the sum is rounded once.

    >>> AddBiases().load([np.ones(2), np.ones(2)]), AddBiases().export([np.ones(2)])
    ([array([2., 2.])], [array([1., 1.]), array([0., 0.])])
    """

    def load(self, arrays: Arrays) -> Arrays:
        """Add the biases, in at least float32."""
        return [_sum(*arrays)]

    def export(self, arrays: Arrays) -> Arrays:
        """Add a second bias of zeros."""
        return [arrays[0], np.zeros_like(arrays[0])]


@dataclass(frozen=True)
class AddGateBiases:
    """Add the biases of inputs and state of the two gates of a GRU; the candidate keeps both of its biases.

    >>> AddGateBiases().load([np.ones(3), np.ones(3)])
    [array([2., 2., 1.]), array([1.])]
    >>> AddGateBiases().export([np.array([2.0, 2, 1]), np.ones(1)])
    [array([2., 2., 1.]), array([0., 0., 1.])]
    """

    def load(self, arrays: Arrays) -> Arrays:
        """Add the biases of the gates, in at least float32."""
        of_inputs, of_state = arrays
        gates = of_inputs.shape[-1] // 3 * 2
        added = _sum(of_inputs[:gates], of_state[:gates])
        return [np.concatenate([added, of_inputs[gates:].astype(added.dtype)]), of_state[gates:]]

    def export(self, arrays: Arrays) -> Arrays:
        """Put zeros in place of the biases of the state that were added."""
        bias, recurrent_bias = arrays
        zeros = np.zeros(bias.shape[-1] - recurrent_bias.shape[-1], recurrent_bias.dtype)
        return [bias, np.concatenate([zeros, recurrent_bias])]


@dataclass(frozen=True)
class NoRecurrentBias:
    """Use zeros for the recurrent bias, which the other library does not have.

    >>> NoRecurrentBias().load([np.ones(3)])
    [array([1., 1., 1.]), array([0.])]
    """

    def load(self, arrays: Arrays) -> Arrays:
        """Add a recurrent bias of zeros."""
        (bias,) = arrays
        return [bias, np.zeros(bias.shape[-1] // 3, bias.dtype)]

    def export(self, arrays: Arrays) -> Arrays:
        """Drop the recurrent bias.

        Raises:
            ArgumentError: if it is not zero.
        """
        bias, recurrent_bias = arrays
        if np.any(recurrent_bias):
            raise ArgumentError(
                "the GRU cell of Flax nnx has no recurrent bias, and here it is not zero; use to='flax' for linen, "
                "which has it, or assign zeros to recurrent_bias first"
            )
        return [bias]
