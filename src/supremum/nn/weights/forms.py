"""A form of a layer in another library: its weights, the names of its inner layers, and how to convert them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from supremum.nn.weights.steps import Arrays, Step


@dataclass(frozen=True)
class Weight:
    """One or more arrays of the other library, and the variables here that hold the same numbers.

    Args:
        theirs: names in the other library, relative to the layer, with `/` between parts.
        ours: paths of variables here, relative to the layer.
        steps: how to convert theirs to ours; the reverse converts ours to theirs.
        collection: the collection of Flax linen.

    >>> from supremum.nn.weights.steps import MoveAxes
    >>> weight = Weight(("weight",), ("kernel",), (MoveAxes((0,), (-1,)),))
    >>> import numpy as np
    >>> [array.shape for array in weight.load([np.zeros((4, 3))])]
    [(3, 4)]
    """

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    collection: str = "params"

    def load(self, arrays: Arrays) -> Arrays:
        """Convert arrays of the other library to values of variables."""
        for step in self.steps:
            arrays = step.load(arrays)
        return arrays

    def export(self, arrays: Arrays) -> Arrays:
        """Convert values of variables to arrays of the other library."""
        for step in reversed(self.steps):
            arrays = step.export(arrays)
        return arrays


@dataclass(frozen=True)
class Form:
    """One way in which a library stores a layer.

    Args:
        weights: the weights, in the order of the library. Those whose variables the layer does not have are left out.
        children: the names of inner layers in the library, by their path here; others have the same name. The first
            name is written, all are read; `*` matches any text, if only one name matches.
        buffers: arrays of the library that have no variable here, with the value that is written.
    """

    weights: tuple[Weight, ...] = ()
    children: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    buffers: Mapping[str, Any] = field(default_factory=dict[str, Any])


def same(*names: str) -> tuple[Weight, ...]:
    """Weights with the same name and layout in both libraries.

    >>> same("kernel")
    (Weight(theirs=('kernel',), ours=('kernel',), steps=(), collection='params'),)
    """
    return tuple(Weight((name,), (name,)) for name in names)


def renamed(**theirs: str) -> tuple[Weight, ...]:
    """Weights with the same layout: the name in the library by the name here.

    >>> renamed(gamma="scale")
    (Weight(theirs=('scale',), ours=('gamma',), steps=(), collection='params'),)
    """
    return tuple(Weight((name,), (ours,)) for ours, name in theirs.items())
