"""Models that run layers in sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supremum.argument_checks import iterable
from supremum.errors import OperandError, shown
from supremum.nn.layer import Layer
from supremum.nn.model_policies import apply_policy_map
from supremum.nn.network import Network, named_layers


class SequentialNetwork(Network):
    """Feed each layer's output to the next; the layers cast, the model itself does not.

    Args:
        layers: the layers. Layers without a name are named after their classes, `"conv"`, `"conv_1"`, ...
        dtype: the policy for layers that were given none, or a `PolicyMap`, as for `Network`; None to leave the
            policies of the layers as they are.
        strict: as for layers.
        trainable: as for layers.
        name: its name.

    Raises:
        OperandError: for an item that is not a layer; a `TypeError`.
        ArgumentError: for a layer that was given no policy and has weights of a policy other than `dtype`; a
            `ValueError`.

    >>> from supremum.nn import Dense
    >>> network = SequentialNetwork([Dense(4), Dense(2, dtype="float32")], dtype="mixed_bfloat16")
    >>> [layer.dtype_policy.name for layer in network]
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
                f"{type(self).__name__} takes layers, got {shown(others[0])}; wrap a function: nn.Activation(function)"
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
        """Run the layers in order; the first one takes all inputs."""
        if not self._order:
            return inputs[0]
        first, *others = (self._layers[name] for name in self._order)
        x = first(*inputs, **kwargs)
        for layer in others:
            x = layer(x)
        return x
