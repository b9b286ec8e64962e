"""The graph of a functional model as data, and the model made of it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import jax

from supremum.argument_checks import known_keys
from supremum.formats import as_format
from supremum.nn.constructor_arguments import as_data, from_data
from supremum.nn.symbolic import Node, SymbolicValue

_TENSOR = "tensor"


def input_data(tensor: Any) -> dict[str, Any]:
    """Write a symbolic input."""
    return {"shape": list(tensor.shape), "dtype": str(as_format(tensor.dtype)), "name": tensor.name}


def is_input_data(node: Any) -> bool:
    """Whether data are those that `input_data` writes."""
    return isinstance(node, dict) and set(cast("dict[Any, Any]", node)) == {"shape", "dtype", "name"}


def made_input(data: Mapping[str, Any], tensor_type: type[SymbolicValue]) -> Any:
    """Make the symbolic input that `input_data` has written."""
    dtype = as_format(data["dtype"]).dtype
    return tensor_type(tuple(data["shape"]), dtype, name=data["name"])  # pyright: ignore[reportCallIssue]


def graph_data(inputs: Any, outputs: Any, nodes: Sequence[Node], layers: Mapping[str, Any]) -> dict[str, Any]:
    """Write the graph of a functional model: inputs, layers, their calls in order, and outputs.

    Each symbolic tensor is written as its number: those of the inputs come first, then the outputs of each call.

    Args:
        inputs: the symbolic inputs.
        outputs: the symbolic outputs.
        nodes: the calls, each after the calls that it depends on.
        layers: the layers by name.
    """
    numbers: dict[int, int] = {}

    def number(tree: Any) -> None:
        for leaf in jax.tree.leaves(tree):
            numbers.setdefault(id(leaf), len(numbers))

    def written_leaf(leaf: Any) -> Any:
        return {_TENSOR: numbers[id(leaf)]} if id(leaf) in numbers else as_data(leaf)

    def written(tree: Any) -> Any:
        return jax.tree.map(written_leaf, tree)

    names = {id(layer): name for name, layer in layers.items()}
    number(inputs)
    calls: list[dict[str, Any]] = []
    for node in nodes:
        calls.append({"layer": names[id(node.layer)], "args": written(node.args), "kwargs": written(node.kwargs)})
        number(node.outputs)

    return {
        "inputs": jax.tree.map(input_data, inputs),
        "layers": {name: as_data(layer) for name, layer in layers.items()},
        "calls": calls,
        "outputs": written(outputs),
    }


def made_graph(data: Mapping[str, Any], tensor_type: type[SymbolicValue]) -> tuple[Any, Any]:
    """Make the symbolic inputs and outputs that `graph_data` has written, with new layers.

    Args:
        data: the result of `graph_data`.
        tensor_type: the class of the inputs.
    """
    entries = known_keys("functional model's config", data, ("inputs", "layers", "calls", "outputs"))
    tensors: list[Any] = []

    def read_leaf(leaf: Any) -> Any:
        return tensors[leaf[_TENSOR]] if _is_tensor(leaf) else leaf

    def read(tree: Any) -> Any:
        return from_data(jax.tree.map(read_leaf, tree, is_leaf=_is_tensor))

    make = partial(made_input, tensor_type=tensor_type)
    inputs = jax.tree.map(make, entries["inputs"], is_leaf=is_input_data)
    tensors += jax.tree.leaves(inputs)
    layers = {name: from_data(each) for name, each in entries["layers"].items()}
    for call in entries["calls"]:
        outputs = layers[call["layer"]](*read(call["args"]), **read(call["kwargs"]))
        tensors += jax.tree.leaves(outputs)
    return inputs, read(entries["outputs"])


def _is_tensor(node: Any) -> bool:
    return isinstance(node, dict) and set(cast("dict[Any, Any]", node)) == {_TENSOR}
