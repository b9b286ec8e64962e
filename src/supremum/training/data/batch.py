"""What one step learns from."""

from __future__ import annotations

from typing import Any, NamedTuple


class Batch(NamedTuple):
    """What one step learns from.

    Attributes:
        x: the inputs of the model: an array, or what structure of arrays it takes.
        y: the labels; None where the model's own losses are all there is.
        sample_weight: how much each example counts, shape (batch,); None for all alike.
    """

    x: Any
    y: Any = None
    sample_weight: Any = None
