"""Layers one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supremum.argument_checks import iterable
from supremum.errors import OperandError, shown
from supremum.nn.layer import Layer
from supremum.nn.model import Model, named_layers
from supremum.nn.model_policies import apply_policy_map


class Sequential(Model):
    """Feed each layer's output to the next; casts nothing itself, each layer does.

    Args:
        layers: the layers. They are named after their classes, `"conv"`, `"conv_1"`, ..., unless they have names.
        dtype: the policy of the layers that were given none, or a `PolicyMap` for the layers, as for `Model`; None for
            the global policy, which is handed to none of them.
        strict: as for layers.
        trainable: likewise.
        name: its name.

    Raises:
        OperandError: for what is not a layer; a `TypeError`.
        ArgumentError: for a layer that was given no policy and has weights of a policy other than `dtype`; a
            `ValueError`.

    >>> from supremum.nn import Dense
    >>> [layer.dtype_policy.name for layer in Sequential([Dense(4), Dense(2, dtype="float32")], dtype="mixed_bfloat16")]
    ['mixed_bfloat16', 'float32']
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        *,
        dtype: Any = None,
        strict: bool = False,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        layers = list(iterable("layers", layers, "layers"))
        others = [layer for layer in layers if not isinstance(layer, Layer)]  # pyright: ignore[reportUnnecessaryIsInstance]
        if others:
            raise OperandError(
                f"Sequential takes layers, not {shown(others[0])}: nn.Activation(function) makes one of a function"
            )
        super().__init__(dtype=dtype, strict=strict, trainable=trainable, name=name)
        self.autocast = False
        self._layers = named_layers(layers)
        names = {id(layer): name for name, layer in self._layers.items()}
        self._order = tuple(names[id(layer)] for layer in layers)
        if self.policy_map is not None:
            apply_policy_map(self, self.policy_map, warns=False)

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: int) -> Layer:
        return self._layers[self._order[index]]

    def call(self, *inputs: Any, **kwargs: Any) -> Any:
        """The last layer's output; the first layer takes all inputs."""
        if not self._order:
            return inputs[0]
        first, *others = (self._layers[name] for name in self._order)
        x = first(*inputs, **kwargs)
        for layer in others:
            x = layer(x)
        return x
