"""Layers one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from supremum.nn.layer import Layer, snake_case


class Sequential(Layer):
    """Feed each layer's output to the next; casts nothing itself, each layer does.

    Args:
        layers: the layers, each of which brings its own policy. They are named after their classes, `"conv"`,
            `"conv_1"`, ...
        dtype: the policy that a training loop takes the loss scale from; None for the first layer's.
    """

    def __init__(self, layers: Sequence[Layer], *, dtype: Any = None) -> None:
        if dtype is None and layers:
            dtype = layers[0].dtype_policy
        super().__init__(dtype=dtype, autocast=False)
        self._layers: dict[str, Layer] = {}
        for layer in layers:
            base = name = snake_case(type(layer).__name__)
            number = 0
            while name in self._layers:
                number += 1
                name = f"{base}_{number}"
            self._layers[name] = layer

    def sublayers(self) -> Iterator[tuple[str, Layer]]:
        """The layers and their names, in order."""
        yield from self._layers.items()

    def call(self, x: Any, *, training: bool = False) -> Any:
        """The last layer's output."""
        for layer in self._layers.values():
            x = layer(x, training=training)
        return x
