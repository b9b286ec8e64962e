"""Values without data: shapes and dtypes, and the graph of the layers they come from."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from supremum.argument_checks import pytree
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType, as_format
from supremum.nn.array_arguments import split_arrays
from supremum.nn.scopes import declaring

# An axis of unknown length is tried with two lengths: what differs in the outputs is unknown there too.
_LENGTHS = (2, 3)


class Node:
    """A call of a layer in a functional model.

    Args:
        layer: the layer, which keeps the shapes and dtypes of its outputs in `output_spec`.
        args: what it was given, with symbolic tensors in it.
        kwargs: likewise.
    """

    __slots__ = ("args", "kwargs", "layer", "outputs")

    def __init__(self, layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.layer = layer
        self.args = args
        self.kwargs = kwargs
        self.outputs: Any = None

    @property
    def inputs(self) -> list[SymbolicValue]:
        """The symbolic tensors among its arguments."""
        return symbolic_leaves((self.args, self.kwargs))


class SymbolicValue:
    """An array with a known shape and dtype but no values, as an input or an output of a layer in a functional model.

    Args:
        shape: its shape, with None for axes of any length.
        dtype: its dtype.
        node: the call it comes from; None for an input.
        name: of an input.
    """

    __slots__ = ("dtype", "name", "node", "shape")

    def __init__(self, shape: tuple[int | None, ...], dtype: DType, node: Node | None = None, name: str = "") -> None:
        self.shape = shape
        self.dtype = dtype
        self.node = node
        self.name = name

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise OperandError(
            f"{shown(self)} has no values: it stands for an input of a functional model, which layers take"
        )

    def __iter__(self) -> Any:
        raise OperandError(f"{shown(self)} cannot be taken apart: its first axis is the batch; index it")

    def __bool__(self) -> bool:
        raise OperandError(
            f"{shown(self)} has no values, so that nothing can depend on them: use a layer for the choice"
        )

    def __repr__(self) -> str:
        named = f", name={self.name!r}" if self.name else ""
        return f"SymbolicTensor(shape={self.shape}, dtype={as_format(self.dtype)}{named})"


def symbolic_leaves(tree: Any) -> list[SymbolicValue]:
    """The symbolic tensors in a tree."""
    return [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, SymbolicValue)]


def is_symbolic(tree: Any) -> bool:
    """Whether there is a symbolic tensor among the inputs of a layer."""
    leaves = jax.tree.leaves(pytree("the inputs of a layer", tree))
    return any(isinstance(leaf, SymbolicValue) for leaf in leaves)


def call_symbolically(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a layer with symbolic tensors, which computes nothing, and builds it.

    Returns:
        The outputs, symbolic tensors of the class of the inputs.
    """
    node = Node(layer, args, kwargs)
    for number, length in enumerate(_LENGTHS):
        _trace(node, length, again=number > 0)
    kind = type(node.inputs[0])

    def tensor(spec: Spec) -> SymbolicValue:
        return kind(spec.shape, spec.dtype, node)

    node.outputs = jax.tree.map(tensor, layer.output_spec, is_leaf=is_spec)
    return node.outputs


def _trace(node: Node, length: int, *, again: bool) -> None:
    call, tensors = split_arrays(node.layer, (node.args, node.kwargs), lambda leaf: isinstance(leaf, SymbolicValue))

    def spec(tensor: SymbolicValue) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(tuple(length if size is None else size for size in tensor.shape), tensor.dtype)

    with declaring(again=again):
        jax.eval_shape(call, [spec(tensor) for tensor in tensors])


class Spec(NamedTuple):
    """Shape and dtype of an output.

    Args:
        shape: its shape, with None for axes of any length.
        dtype: its dtype.
    """

    shape: tuple[int | None, ...]
    dtype: DType


def spec_of(leaf: Any) -> Any:
    """The shape and dtype of an array; anything else as it is."""
    return Spec(tuple(leaf.shape), leaf.dtype) if hasattr(leaf, "dtype") else leaf


def is_spec(leaf: Any) -> bool:
    """Whether something is a `Spec`, which JAX would take for a container."""
    return isinstance(leaf, Spec)


def common_spec(one: Any, other: Any) -> Any:
    """What two outputs of a layer have in common, for two lengths of the axes of any length.

    Raises:
        ArgumentError: if they have different numbers of axes.
    """
    if not is_spec(one):
        return one
    if len(one.shape) != len(other.shape):
        raise ArgumentError(f"the number of axes of the outputs depends on a length that is not known: {one}, {other}")
    return Spec(tuple(a if a == b else None for a, b in zip(one.shape, other.shape, strict=True)), one.dtype)
