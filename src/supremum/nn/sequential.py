"""A model that is a sequence of layers."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from supremum.argument_checks import iterable
from supremum.errors import ArgumentError, OperandError, shown
from supremum.mixed_precision import Policy, PolicyMap
from supremum.nn.constructor_arguments import as_data
from supremum.nn.layer import Layer
from supremum.nn.network import Input, Network, SymbolicTensor, name_layers
from supremum.nn.symbolic import call_symbolically
from supremum.typing import DTypeLike, PyTree


class SequentialNetwork(Network):
    """Feed each layer's output to the next; the layers cast, the model itself does not.

    A model that starts with an `nn.Input`, or whose first layer was given `input_shape=`, knows the shapes of its
    weights and outputs at once; other models know them after their first call, or `nn.initialize`.

    Args:
        layers: the layers, after an `nn.Input` if you like. Layers without a name are named after their classes,
            `"conv"`, `"conv_1"`, ...
        dtype: the policy for layers that were given none, or a `PolicyMap`, as for `Network`; None to leave the
            policies of the layers as they are.
        strict: as for layers.
        trainable: as for layers.
        name: its name.

    Raises:
        OperandError: for an item that is not a layer; a `TypeError`.
        ArgumentError: for a layer that was given no policy and has weights of a policy other than `dtype`, or an
            `nn.Input` that is not the first item; a `ValueError`.

    >>> from supremum.nn import Dense
    >>> network = SequentialNetwork(
    ...     [Dense(4), Dense(2, dtype="float32")], dtype="mixed_bfloat16"
    ... )
    >>> [layer.dtype_policy.name for layer in network]
    ['mixed_bfloat16', 'float32']
    >>> network = SequentialNetwork([Input((3,)), Dense(4, "relu")])
    >>> network.add(Dense(2))
    >>> [variable.shape for variable in network.variables.values()]
    [(3, 4), (4,), (4, 2), (2,)]
    """

    def __init__(
        self,
        layers: Sequence[Layer | SymbolicTensor] = (),
        *,
        dtype: Policy | PolicyMap | DTypeLike | None = None,
        strict: bool = False,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype, strict=strict, trainable=trainable, name=name)
        self.autocast = False
        self._input: SymbolicTensor | None = None
        self._order: tuple[str, ...] = ()
        for layer in iterable("layers", layers, "layers"):
            self._append(layer)
        self._declare(is_complete=True)

    def add(self, layer: Layer | SymbolicTensor) -> None:
        """Add a layer at the end, or an `nn.Input` at the start of an empty model.

        Args:
            layer: the layer; layers in the model keep their weights.

        Raises:
            OperandError: for anything that is not a layer; a `TypeError`.
            ArgumentError: for an `nn.Input` in a model that has layers; a `ValueError`.
        """
        self._append(layer)
        self._declare()

    def pop(self) -> Layer:
        """Remove the last layer, and return it.

        Raises:
            ArgumentError: if there is none; a `ValueError`.
        """
        if not self._order:
            raise ArgumentError(f"{shown(self)} has no layers to remove")
        *layers, last = self
        self._set_layers(layers)
        self._declare()
        return last

    def _append(self, layer: Any) -> None:
        if isinstance(layer, SymbolicTensor):
            if self._order or self._input is not None or layer.node is not None:
                raise ArgumentError(
                    f"an nn.Input must be the first item of a {type(self).__name__}, got {shown(layer)} after "
                    f"{len(self)} layers; for a model with branches use nn.Network(inputs, outputs)"
                )
            self._input = layer
            return
        if not isinstance(layer, Layer):
            raise OperandError(
                f"{type(self).__name__} takes layers, got {shown(layer)}; wrap a function: nn.Lambda(function)"
            )
        if not self._order and self._input is None and layer._input_shape is not None:
            self._input = Input(layer._input_shape)
        self._set_layers([*self, layer])

    def _set_layers(self, layers: list[Layer]) -> None:
        self._layers = name_layers(layers)
        names = {id(layer): name for name, layer in self._layers.items()}
        self._order = tuple(names[id(layer)] for layer in layers)
        self.built = self._has_weights = False
        self._apply_policy_map(warns=False)

    def _declare(self, *, is_complete: bool = False) -> None:
        """Find the shapes of weights and outputs, if the input is known.

        Args:
            is_complete: whether patterns of policies that match no layer are probably misspelt.
        """
        if self._input is None or not self._order:
            return
        self._is_complete = is_complete
        try:
            call_symbolically(self, (self._input,), {})
        finally:
            self._is_complete = True

    def _undo_build(self) -> None:
        """Build the layers again in the next call."""
        self.built = False  # it has no weights of its own, and layers may have been added since

    def _trace_again(self) -> None:
        """Find the shapes and dtypes of weights and outputs again, after the policies of layers have changed."""
        self._declare()

    def get_config(self) -> dict[str, Any]:
        """Return the input and the layers as data, and the other arguments of the constructor."""
        config = super().get_config()
        if "layers" in inspect.signature(type(self)).parameters:  # layers may have been added or exchanged since
            inputs = [] if self._input is None else [self._input]
            config["layers"] = as_data([*inputs, *self])
        return config

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: int) -> Layer:
        return self._layers[self._order[index]]

    def call(self, *inputs: PyTree, **kwargs: PyTree) -> Any:
        """Run the layers in order; the first one takes all inputs."""
        if not self._order:
            return inputs[0]
        first, *others = (self._layers[name] for name in self._order)
        x = first(*inputs, **kwargs)
        for layer in others:
            x = layer(x)
        return x
