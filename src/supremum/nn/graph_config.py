"""The graph of a functional model as data, and the model made of it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import jax

from supremum.argument_checks import known_keys
from supremum.nn.constructor_arguments import as_data, from_data
from supremum.nn.symbolic import LayerNode
from supremum.typing import PyTree

_TENSOR = "tensor"


def graph_data(
    inputs: PyTree, outputs: PyTree, nodes: Sequence[LayerNode], layers: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the graph of a functional model: inputs, layers, their calls in order, and outputs.

    Each symbolic tensor is written as its number: those of the inputs come first, then the outputs of each call.

    Args:
        inputs: the symbolic inputs.
        outputs: the symbolic outputs.
        nodes: the calls, each after the calls that it depends on.
        layers: the layers by name.
    """
    tensors = jax.tree.leaves((inputs, [node.outputs for node in nodes]))
    numbers = {id(tensor): number for number, tensor in enumerate(tensors)}
    names = {id(layer): name for name, layer in layers.items()}

    def write_leaf(leaf: Any) -> Any:
        return {_TENSOR: numbers[id(leaf)]} if id(leaf) in numbers else as_data(leaf)

    write = partial(jax.tree.map, write_leaf)
    calls = [{"layer": names[id(node.layer)], "args": write(node.args), "kwargs": write(node.kwargs)} for node in nodes]
    return {"inputs": as_data(inputs), "layers": as_data(dict(layers)), "calls": calls, "outputs": write(outputs)}


def graph_of(data: Mapping[str, Any]) -> tuple[Any, Any]:
    """The symbolic inputs and outputs that `graph_data` has written, with new layers.

    Args:
        data: the result of `graph_data`.
    """
    entries = known_keys("functional model's config", data, ("inputs", "layers", "calls", "outputs"))
    inputs, layers = from_data(entries["inputs"]), from_data(entries["layers"])
    tensors: list[Any] = jax.tree.leaves(inputs)

    def read_leaf(leaf: Any) -> Any:
        return tensors[leaf[_TENSOR]] if _is_tensor(leaf) else leaf

    def read(tree: Any) -> Any:
        return from_data(jax.tree.map(read_leaf, tree, is_leaf=_is_tensor))

    for call in entries["calls"]:
        outputs = layers[call["layer"]](*read(call["args"]), **read(call["kwargs"]))
        tensors += jax.tree.leaves(outputs)
    return inputs, read(entries["outputs"])


def _is_tensor(node: Any) -> bool:
    return isinstance(node, dict) and set(cast("dict[Any, Any]", node)) == {_TENSOR}
